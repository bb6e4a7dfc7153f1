#include "isomer/laws/scan/scan_law.h"

#include <algorithm>
#include <array>

#include "isomer/base/error.h"
#include "isomer/laws/named_call.h"
#include "isomer/laws/scan/scan.h"

namespace isomer {

namespace {

constexpr std::array<std::string_view, 5> kS6Only{"step", "a", "b", "c", "d"};

/// Do these inputs ask for S6?
bool is_s6(const Tensors& inputs) {
  return std::any_of(kS6Only.begin(), kS6Only.end(), [&](std::string_view name) { return inputs.contains(name); });
}

/// One call on named tensors.
template <class T>
struct Run : NamedCall<T> {
  using Base = NamedCall<T>;
  using Base::call, Base::given, Base::input, Base::like, Base::offsets, Base::out, Base::output;
  ScanTape<T> tape = {};

  Run(const Call& a, const Sizes& b) : Base{a, b} {}
  [[nodiscard]] bool wanted() const { return wants_gradients(call.inputs); }
  void need(std::initializer_list<const char*> names) const {
    for (const char* name : names) require(given(name), "scan", "expected an input ", name, ", found none");
  }

  void plain() {
    need({"log_decay"});
    const ScanInputs<T> in{.log_decay = input("log_decay"),
                           .x = input("x"),
                           .angle = input("angle"),
                           .x_imag = input("x_imag"),
                           .initial = {input("initial_state"), input("initial_imag")},
                           .offsets = offsets()};
    ScanOutputs<T> to{.h = output("h", "B T N"), .tape = wanted() ? &tape : nullptr};
    to.final_states.state = output("final_state", "n N");
    if (in.complex()) to.h_imag = output("h_imag", "B T N");
    if (in.complex()) to.final_states.imag = output("final_imag", "n N");
    scan(in, {}, call.form, to, call.context);
    if (!wanted()) return;
    const ScanGradients<T> grad{.log_decay = like("log_decay"),
                                .x = like("x"),
                                .angle = like("angle"),
                                .x_imag = like("x_imag"),
                                .initial = {like("initial_state"), like("initial_imag")}};
    scan_vjp(in, {}, call.form,
             {.h = input("grad_h"),
              .h_imag = input("grad_h_imag"),
              .final_states = {input("grad_final_state"), input("grad_final_imag")},
              .tape = &tape},
             grad, call.context);
  }

  void s6() {
    need({"step", "a", "b", "c"});
    const ScanS6Inputs<T> in{.x = input("x"),
                             .step = input("step"),
                             .a = input("a"),
                             .b = input("b"),
                             .c = input("c"),
                             .d = input("d"),
                             .initial_state = input("initial_state"),
                             .offsets = offsets()};
    scan_s6(in, {}, call.form,
            {.o = output("o", "B T C"), .final_state = output("final_state", "n C N"), .tape = wanted() ? &tape : nullptr},
            call.context);
    if (!wanted()) return;
    const ScanS6Gradients<T> grad{.x = like("x"),
                                  .step = like("step"),
                                  .a = like("a"),
                                  .b = like("b"),
                                  .c = like("c"),
                                  .d = like("d"),
                                  .initial_state = like("initial_state")};
    scan_s6_vjp(in, {}, call.form, {.o = input("grad_o"), .final_state = input("grad_final_state"), .tape = &tape}, grad,
                call.context);
  }

  Tensors operator()() {
    if (is_s6(call.inputs))
      s6();
    else
      plain();
    return std::move(out);
  }
};

class ScanLaw final : public Law {
 public:
  [[nodiscard]] std::string_view name() const override { return "scan"; }
  [[nodiscard]] std::string_view equation() const override {
    return "h = exp(log_decay + i angle) h + x; S6: h = exp(step a) h + step x b^T, o = h c + d x";
  }
  [[nodiscard]] std::span<const TensorSpec> inputs() const override {
    static constexpr std::array<TensorSpec, 12> specs{{{"log_decay", "B T N", Domain::log_decay},
                                                       {"x", "B T N|B T C", Domain::normal, true},
                                                       {"angle", "B T N"},
                                                       {"x_imag", "B T N"},
                                                       {"step", "B T C", Domain::positive},
                                                       {"a", "C N", Domain::negative},
                                                       {"b", "B T N"},
                                                       {"c", "B T N"},
                                                       {"d", "C"},
                                                       {"initial_state", "n N|n C N"},
                                                       {"initial_imag", "n N"},
                                                       {"offsets", "n+1", Domain::offsets}}};
    return specs;
  }
  [[nodiscard]] std::span<const TensorSpec> outputs() const override {
    static constexpr std::array<TensorSpec, 5> specs{
        {{"h", "B T N"}, {"h_imag", "B T N"}, {"o", "B T C"}, {"final_state", "n N|n C N"}, {"final_imag", "n N"}}};
    return specs;
  }
  [[nodiscard]] std::string_view dims(const TensorSpec& spec, const Tensors& inputs) const override {
    const std::size_t bar = spec.dims.find('|');
    if (bar == std::string_view::npos) return spec.dims;
    return is_s6(inputs) ? spec.dims.substr(bar + 1) : spec.dims.substr(0, bar);
  }
  [[nodiscard]] std::span<const OptionSpec> options() const override { return {}; }
  [[nodiscard]] std::span<const Form> forms() const override {
    static constexpr std::array all{Form::reference, Form::step, Form::chunk};
    return all;
  }
  [[nodiscard]] std::span<const Case> cases() const override;
  [[nodiscard]] bool uses(std::string_view tensor, const Settings&, const Tensors& inputs) const override {
    const bool s6 = is_s6(inputs);
    if (tensor == "x" || tensor == "offsets" || tensor.ends_with("_state")) return true;
    if (tensor == "o" || std::find(kS6Only.begin(), kS6Only.end(), tensor) != kS6Only.end()) return s6;
    if (tensor == "h_imag" || tensor == "final_imag")
      return !s6 && (inputs.contains("angle") || inputs.contains("x_imag") || inputs.contains("initial_imag"));
    return !s6;
  }
  [[nodiscard]] double tolerance(std::string_view quantity) const override;
  [[nodiscard]] Tensors run(const Call& call, const Sizes& sizes) const override {
    return call.inputs.at("x").type() == Type::f32 ? Run<float>(call, sizes)() : Run<double>(call, sizes)();
  }
  [[nodiscard]] std::vector<BenchCase> bench_cases(bool quick) const override { return scan_detail::bench_cases(quick); }
  [[nodiscard]] BenchWork prepare(const BenchCase& what) const override { return scan_detail::prepare_bench(what); }
  [[nodiscard]] Choice choose(const BenchCase& what) const override { return scan_detail::choose_bench(what); }
};

double ScanLaw::tolerance(std::string_view) const {
  // Errors of decays and sums grow with the memory of a channel, which is tens of tokens in the cases: most are below 5.
  return 32;
}

std::span<const Case> ScanLaw::cases() const {
  static const std::vector<Case> all = [] {
    std::vector<Case> cases;
    const auto add = [&](std::string label, std::vector<std::string> with, const Sizes& sizes = {}) {
      with.emplace_back("log_decay");
      cases.push_back({.label = std::move(label), .with = std::move(with), .sizes = sizes});
    };
    const auto add_s6 = [&](std::string label, std::vector<std::string> with, const Sizes& sizes = {}) {
      with.insert(with.end(), {"x:B T C", "step", "a", "b", "c"});
      cases.push_back({.label = std::move(label), .with = std::move(with), .sizes = sizes});
    };
    add("real", {});
    add("real, carried", {"initial_state"});
    add("real, packed", {"initial_state", "offsets"});
    add("real, long", {}, {{"B", 1}, {"T", 300}, {"N", 70}});
    add("complex", {"angle"});
    add("complex, carried", {"angle", "x_imag", "initial_state", "initial_imag"});
    add("complex inputs", {"x_imag"});
    add("complex state", {"initial_imag"});
    add("complex, packed", {"angle", "x_imag", "initial_imag", "offsets"});
    add("complex, long", {"angle", "x_imag"}, {{"B", 1}, {"T", 300}, {"N", 70}});
    add_s6("s6", {});
    add_s6("s6, carried", {"d", "initial_state:n C N"});
    add_s6("s6, packed", {"d", "initial_state:n C N", "offsets"});
    add_s6("s6, long", {"d"}, {{"B", 1}, {"T", 300}, {"C", 40}, {"N", 16}});
    return cases;
  }();
  return all;
}

}  // namespace

const Law& scan_law() {
  static const ScanLaw law;
  return law;
}

}  // namespace isomer

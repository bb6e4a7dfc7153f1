#include "isomer/laws/scan/scan_law.h"

#include <algorithm>
#include <array>

#include "isomer/laws/scan/scan_run.h"

namespace isomer {

namespace {

// Places of the specs below.
enum In : std::size_t { log_decay, x, angle, x_imag, step, a, b, c, d, initial_state, initial_imag };
enum Out : std::size_t { h, h_imag, o, final_state, final_imag };

constexpr std::array<std::string_view, 5> kS6Only{"step", "a", "b", "c", "d"};

/// Do these inputs ask for S6?
bool is_s6(Given given) { return given[step] || given[a] || given[b] || given[c] || given[d]; }
bool is_s6(const LawViews& in) { return in[step].present(); }
bool is_complex(Given given) { return given[angle] || given[x_imag] || given[initial_imag]; }

template <class T>
ScanInputs<T> inputs_of(const LawViews& in, std::span<const std::int64_t> offsets) {
  return {.log_decay = in[log_decay],
          .x = in[x],
          .angle = in[angle],
          .x_imag = in[x_imag],
          .initial = {in[initial_state], in[initial_imag]},
          .offsets = offsets};
}

template <class T>
ScanS6Inputs<T> s6_inputs_of(const LawViews& in, std::span<const std::int64_t> offsets) {
  return {.x = in[x],
          .step = in[step],
          .a = in[a],
          .b = in[b],
          .c = in[c],
          .d = in[d],
          .initial_state = in[initial_state],
          .offsets = offsets};
}

template <class T>
ScanTape<T>* tape_of(const LawRun& run) {
  return run.tape != nullptr ? &run.tape->as<ScanTape<T>>() : nullptr;
}

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
  [[nodiscard]] std::span<const StateSpec> states() const override {
    static constexpr std::array<StateSpec, 2> specs{{{"state", initial_state, final_state}, {"imag", initial_imag, final_imag}}};
    return specs;
  }
  [[nodiscard]] std::span<const OptionSpec> options() const override { return {}; }
  [[nodiscard]] std::span<const Form> forms() const override {
    static constexpr std::array all{Form::reference, Form::step, Form::chunk};
    return all;
  }
  [[nodiscard]] std::span<const Case> cases() const override;
  [[nodiscard]] double tolerance(std::string_view quantity) const override;
  [[nodiscard]] std::shared_ptr<const BoundLaw> bind(const Settings&) const override { return std::make_shared<BoundScan>(); }
  [[nodiscard]] std::span<const BenchVariant> variants() const override {
    static const std::vector<BenchVariant> all{{.name = "real", .with = {"log_decay"}},
                                               {.name = "complex", .with = {"log_decay", "angle", "x_imag"}},
                                               {.name = "s6", .with = {"step", "a", "b", "c", "d"}}};
    return all;
  }
  [[nodiscard]] LawSizes bench_sizes(const BenchCase& what) const override {
    const Index channels = what.H * what.K;
    const bool s6 = what.variant == "s6";
    return {.B = what.B, .T = what.T, .S = what.T, .N = s6 ? what.V : channels, .C = s6 ? channels : 1, .n = what.B};
  }
  [[nodiscard]] std::vector<BenchCase> bench_cases(bool quick) const override { return scan_detail::bench_cases(quick); }
  [[nodiscard]] BenchWork prepare(const BenchCase& what) const override { return scan_detail::prepare_bench(what); }
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

bool BoundScan::uses(std::string_view tensor, Given given) const {
  const bool s6 = is_s6(given);
  if (tensor == "x" || tensor == "offsets" || tensor.ends_with("_state")) return true;
  if (tensor == "o" || std::find(kS6Only.begin(), kS6Only.end(), tensor) != kS6Only.end()) return s6;
  if (tensor == "h_imag" || tensor == "final_imag") return !s6 && is_complex(given);
  return !s6;
}

bool BoundScan::needs(const TensorSpec& spec, Given given) const {
  if (!is_s6(given)) return spec.required || spec.name == "log_decay";
  return spec.required || (spec.name != "d" && std::find(kS6Only.begin(), kS6Only.end(), spec.name) != kS6Only.end());
}

std::span<const Axes> BoundScan::axes(const TensorSpec& spec, Given given) const {
  const std::span<const Axes> all = spec.all();
  return all.size() == 1 ? all : all.subspan(is_s6(given) ? 1 : 0, 1);
}

void BoundScan::forward(const LawViews& in, const LawViews& out, const LawRun& run) const {
  with_type(in[x].type, [&]<class T>() {
    if (is_s6(in))
      return scan_s6<T>(s6_inputs_of<T>(in, run.offsets), options_, run.form,
                        {.o = out[o], .final_state = out[final_state], .tape = tape_of<T>(run)}, run.context);
    scan<T>(inputs_of<T>(in, run.offsets), options_, run.form,
            {.h = out[h], .h_imag = out[h_imag], .final_states = {out[final_state], out[final_imag]}, .tape = tape_of<T>(run)},
            run.context);
  });
}

void BoundScan::backward(const LawViews& in, const LawViews&, const LawViews& grad_out, const LawViews& grad_in,
                         const LawRun& run) const {
  with_type(in[x].type, [&]<class T>() {
    if (is_s6(in))
      return scan_s6_vjp<T>(s6_inputs_of<T>(in, run.offsets), options_, run.form,
                            {.o = grad_out[o], .final_state = grad_out[final_state], .tape = tape_of<T>(run)},
                            {.x = grad_in[x],
                             .step = grad_in[step],
                             .a = grad_in[a],
                             .b = grad_in[b],
                             .c = grad_in[c],
                             .d = grad_in[d],
                             .initial_state = grad_in[initial_state]},
                            run.context);
    scan_vjp<T>(inputs_of<T>(in, run.offsets), options_, run.form,
                {.h = grad_out[h],
                 .h_imag = grad_out[h_imag],
                 .final_states = {grad_out[final_state], grad_out[final_imag]},
                 .tape = tape_of<T>(run)},
                {.log_decay = grad_in[log_decay],
                 .x = grad_in[x],
                 .angle = grad_in[angle],
                 .x_imag = grad_in[x_imag],
                 .initial = {grad_in[initial_state], grad_in[initial_imag]}},
                run.context);
  });
}

Choice BoundScan::plan(const LawSizes& sizes, Given given, bool taped) const {
  return is_s6(given) ? scan_detail::choose_s6(sizes.T, taped) : scan_detail::choose();
}

std::string BoundScan::plan_reason(const LawSizes& sizes, const Choice& choice) const {
  if (choice.form == Form::step) return BoundLaw::plan_reason(sizes, choice);
  return "channels side by side along the tokens; the tape keeps states at the edges of chunks only";
}

double BoundScan::flops(const LawSizes& s, Given given, LawPass pass, Form) const {
  const double updates = double(s.B * s.T * s.N * (is_s6(given) ? s.C : 1));
  const bool back = pass == LawPass::backward;
  if (is_s6(given)) return updates * (back ? 28 : 15);
  return updates * (is_complex(given) ? (back ? 54 : 40) : (back ? 15 : 12));
}

StateDimension BoundScan::state_dimension(const LawSizes& s, Given given) const {
  return is_s6(given) ? StateDimension{s.N, s.C} : StateDimension{1, s.N};
}

std::vector<std::string> BoundScan::equations(Given given) const {
  if (is_s6(given)) return {"h = exp(step a) * h + (step * u) b'", given[d] ? "o = h c + d * u" : "o = h c"};
  if (!given[angle] && !given[x_imag]) return {"o = h = exp(log_decay) * h + in"};
  const std::string in = given[x_imag] ? "(in + i in_imag)" : "in";
  return {"h = exp(log_decay + i angle) * h + " + in, "o = [Re h, Im h]"};
}

std::string_view BoundScan::symbol(const TensorSpec& input, Given given) const {
  // x is the layer's input.
  if (input.name == "x") return is_s6(given) ? "u" : "in";
  return input.name == "x_imag" ? "in_imag" : input.name;
}

}  // namespace isomer

#include "isomer/laws/delta/delta_law.h"

#include <array>

#include "isomer/laws/delta/delta.h"

namespace isomer {

namespace {

/// One call on named tensors.
template <class T>
struct Run {
  const Call& call;
  const Sizes& sizes;
  DeltaOptions options = {.l2norm = read_bool(call.settings, "l2norm", false)};
  Tensors out = {};

  [[nodiscard]] bool given(const std::string& name) const { return call.inputs.contains(name); }
  [[nodiscard]] bool decays_keys() const { return given("log_decay") && call.inputs.at("log_decay").shape().size() == 4; }
  [[nodiscard]] bool decays_heads() const { return given("log_decay") && !decays_keys(); }
  template <int R>
  [[nodiscard]] View<const T, R> input(const std::string& name) const {
    return given(name) ? call.inputs.at(name).view<const T, R>() : View<const T, R>{};
  }
  template <int R>
  View<T, R> output(const std::string& name, std::vector<Index> shape) {
    return (out[name] = Tensor(type_of<T>, std::move(shape))).template view<T, R>();
  }
  /// An output grad_X shaped like the input X, absent without X.
  template <int R>
  View<T, R> like(const std::string& name) {
    return given(name) ? output<R>("grad_" + name, call.inputs.at(name).shape()) : View<T, R>{};
  }

  [[nodiscard]] DeltaInputs<T> inputs() const {
    DeltaInputs<T> in{.q = input<4>("q"),
                      .k = input<4>("k"),
                      .v = input<4>("v"),
                      .beta = input<3>("beta"),
                      .a = input<4>("a"),
                      .b = input<4>("b"),
                      .initial_state = input<4>("initial_state")};
    if (decays_heads()) in.log_decay = input<3>("log_decay");
    if (decays_keys()) in.key_log_decay = input<4>("log_decay");
    if (given("offsets"))
      in.offsets = {call.inputs.at("offsets").data<std::int64_t>(), std::size_t(call.inputs.at("offsets").size())};
    return in;
  }

  void gradients(const DeltaInputs<T>& in, const DeltaTape<T>& tape) {
    DeltaGradients<T> grad{.q = like<4>("q"),
                           .k = like<4>("k"),
                           .v = like<4>("v"),
                           .beta = like<3>("beta"),
                           .a = like<4>("a"),
                           .b = like<4>("b"),
                           .initial_state = like<4>("initial_state")};
    if (decays_heads()) grad.log_decay = like<3>("log_decay");
    if (decays_keys()) grad.key_log_decay = like<4>("log_decay");
    delta_vjp(in, options, call.form, {.o = input<4>("grad_o"), .final_state = input<4>("grad_final_state"), .tape = &tape}, grad,
              call.context);
  }

  Tensors operator()() {
    if (call.settings.contains("scale")) options.scale = read_number(call.settings, "scale", 0);
    const DeltaInputs<T> in = inputs();
    DeltaTape<T> tape;
    const bool wanted = wants_gradients(call.inputs);
    const Index H = sizes.at("H"), V = sizes.at("V");
    delta(in, options, call.form,
          {.o = output<4>("o", {sizes.at("B"), sizes.at("T"), H, V}),
           .final_state = output<4>("final_state", {sizes.at("n"), H, sizes.at("K"), V}),
           .tape = wanted ? &tape : nullptr},
          call.context);
    if (wanted) gradients(in, tape);
    return std::move(out);
  }
};

class DeltaLaw final : public Law {
 public:
  [[nodiscard]] std::string_view name() const override { return "delta"; }
  [[nodiscard]] std::string_view equation() const override {
    return "S = D - beta k (k^T D - v^T), D = exp(log_decay) S, o = scale S^T q; or S = D + b (a^T S) + k v^T";
  }
  [[nodiscard]] std::span<const TensorSpec> inputs() const override {
    static constexpr std::array<TensorSpec, 9> specs{{{"q", "B T Gq K", Domain::normal, true},
                                                      {"k", "B T Gk K", Domain::normal, true},
                                                      {"v", "B T Gv V", Domain::normal, true},
                                                      {"beta", "B T H", Domain::gain},
                                                      {"log_decay", "B T H|B T H K", Domain::log_decay},
                                                      {"a", "B T H K"},
                                                      {"b", "B T H K"},
                                                      {"initial_state", "n H K V"},
                                                      {"offsets", "n+1", Domain::offsets}}};
    return specs;
  }
  [[nodiscard]] std::span<const TensorSpec> outputs() const override {
    static constexpr std::array<TensorSpec, 2> specs{{{"o", "B T H V"}, {"final_state", "n H K V"}}};
    return specs;
  }
  [[nodiscard]] std::span<const OptionSpec> options() const override {
    static constexpr std::array<OptionSpec, 2> specs{
        {{"scale", "K^-1/2", "factor of the outputs"}, {"l2norm", "false", "q and k become x / sqrt(sum x^2 + 1e-6) first"}}};
    return specs;
  }
  [[nodiscard]] std::span<const Form> forms() const override {
    static constexpr std::array all{Form::reference, Form::step, Form::chunk};
    return all;
  }
  [[nodiscard]] std::span<const Case> cases() const override;
  [[nodiscard]] double tolerance(std::string_view quantity) const override {
    // Rounding errors pass through the recurrence: with beta up to 2 it hardly contracts, and a triangular solve of a chunk adds
    // them up. The gradient of a gate is a difference of sums over its chunk.
    if (quantity == "grad_log_decay") return 1024;
    return quantity == "o" ? 128 : 256;
  }
  [[nodiscard]] Tensors run(const Call& call, const Sizes& sizes) const override {
    return call.inputs.at("q").type() == Type::f32 ? Run<float>{call, sizes}() : Run<double>{call, sizes}();
  }
  [[nodiscard]] std::vector<BenchCase> bench_cases(bool quick) const override { return delta_detail::bench_cases(quick); }
  [[nodiscard]] BenchWork prepare(const BenchCase& what) const override { return delta_detail::prepare_bench(what); }
  [[nodiscard]] Choice choose(const BenchCase& what) const override { return delta_detail::choose_bench(what); }
};

std::span<const Case> DeltaLaw::cases() const {
  static const std::vector<Case> all = [] {
    struct Kind {
      const char* name;
      std::vector<std::string> with;
      bool unit_keys;
    };
    const std::vector<Kind> kinds{{"plain", {"beta"}, true},
                                  {"gated", {"beta", "log_decay"}, true},
                                  {"kda", {"beta", "log_decay:B T H K"}, true},
                                  {"rwkv7", {"log_decay:B T H K", "a", "b"}, false}};
    std::vector<Case> cases;
    for (const Kind& kind : kinds) {
      const auto add = [&](const std::string& what, std::vector<std::string> more, const Sizes& sizes, bool l2norm) {
        more.insert(more.begin(), kind.with.begin(), kind.with.end());
        // Keys of length one, or the recurrence explodes; a and b of length one, too.
        std::vector<std::string> unit{"a", "b"};
        if (kind.unit_keys && !l2norm) unit.emplace_back("k");
        cases.push_back({.label = kind.name + what,
                         .settings = l2norm ? Settings{{"l2norm", "true"}} : Settings{},
                         .with = std::move(more),
                         .sizes = sizes,
                         .unit_rows = std::move(unit)});
      };
      add("", {}, {}, false);
      add(", normalised", {}, {}, true);
      add(", carried", {"initial_state"}, {}, false);
      add(", grouped keys, carried", {"initial_state"}, {{"Gq", 4}, {"Gk", 2}, {"Gv", 1}}, true);
      add(", grouped values", {}, {{"Gq", 2}, {"Gk", 1}, {"Gv", 4}}, false);
      add(", packed, carried", {"initial_state", "offsets"}, {}, false);
      add(", long", {}, {{"B", 1}, {"T", 300}, {"H", 1}, {"K", 40}, {"V", 33}}, true);
      add(", many heads", {"initial_state"}, {{"B", 1}, {"H", 9}, {"K", 8}, {"V", 17}}, true);
    }
    cases.push_back(
        {.label = "scaled", .settings = {{"scale", "0.75"}, {"l2norm", "true"}}, .with = {"beta", "log_decay", "initial_state"}});
    return cases;
  }();
  return all;
}

}  // namespace

const Law& delta_law() {
  static const DeltaLaw law;
  return law;
}

}  // namespace isomer

#include "isomer/laws/scalar_decay/scalar_decay_law.h"

#include <array>

#include "isomer/laws/named_call.h"
#include "isomer/laws/scalar_decay/scalar_decay.h"

namespace isomer {

namespace {

using Normaliser = ScalarDecayOptions::Normaliser;
using Direction = ScalarDecayOptions::Direction;

constexpr std::array<std::string_view, 4> kNormalisers{"none", "sum", "max", "subtract"};

ScalarDecayOptions options_from(const Settings& settings) {
  ScalarDecayOptions o;
  if (settings.contains("scale")) o.scale = read_number(settings, "scale", 0);
  o.eps = read_number(settings, "eps", 0);
  o.normaliser = Normaliser(read_choice(settings, "normaliser", kNormalisers));
  if (!read_bool(settings, "causal", true)) o.direction = Direction::global;
  return o;
}

/// Is the state (state, norm, max, value_sum, count) part of the normaliser?
bool has_state(std::string_view state, Normaliser n) {
  if (state == "norm") return n != Normaliser::none;
  if (state == "max") return n == Normaliser::max;
  if (state == "value_sum" || state == "count") return n == Normaliser::subtract;
  return true;
}

/// One call on named tensors.
template <class T>
struct Run : NamedCall<T> {
  using Base = NamedCall<T>;
  using Base::call, Base::given, Base::input, Base::like, Base::offsets, Base::out, Base::output, Base::sizes;
  ScalarDecayOptions options;

  Run(const Call& a, const Sizes& b) : Base{a, b}, options(options_from(a.settings)) {}

  [[nodiscard]] bool fixed() const { return given("log_decay") && call.inputs.at("log_decay").shape().size() == 1; }
  [[nodiscard]] ScalarDecayStates<const T> states(const std::string& prefix) const {
    return {input(prefix + "state"), input(prefix + "norm"), input(prefix + "max"), input(prefix + "value_sum"),
            input(prefix + "count")};
  }

  [[nodiscard]] ScalarDecayInputs<T> inputs() const {
    ScalarDecayInputs<T> in{.q = input("q"),
                            .k = input("k"),
                            .v = input("v"),
                            .log_input = input("log_input"),
                            .initial = states("initial_"),
                            .offsets = offsets()};
    if (fixed())
      in.log_decay = {call.inputs.at("log_decay").template data<T>(), {sizes.at("B"), sizes.at("T"), sizes.at("H")}, {0, 0, 1}};
    else
      in.log_decay = input("log_decay");
    return in;
  }

  ScalarDecayStates<T> final_states() {
    ScalarDecayStates<T> s;
    s.state = output("final_state", "n H K V");
    if (has_state("norm", options.normaliser)) s.norm = output("final_norm", "n H K");
    if (has_state("max", options.normaliser)) s.max = output("final_max", "n H");
    if (has_state("value_sum", options.normaliser)) s.value_sum = output("final_value_sum", "n H V");
    if (has_state("count", options.normaliser)) s.count = output("final_count", "n");
    return s;
  }

  void gradients(const ScalarDecayInputs<T>& in, const ScalarDecayTape<T>& tape) {
    ScalarDecayGradients<T> grad{.q = like("q"), .k = like("k"), .v = like("v"), .log_input = like("log_input")};
    grad.initial = {.state = like("initial_state"), .norm = like("initial_norm"), .value_sum = like("initial_value_sum")};
    Tensor tokens;
    if (fixed()) {
      tokens = Tensor(type_of<T>, {sizes.at("B"), sizes.at("T"), sizes.at("H")});
      grad.log_decay = tokens.view<T, 3>();
    } else {
      grad.log_decay = like("log_decay");
    }
    scalar_decay_vjp(in, options, call.form, {.o = input("grad_o"), .final_states = states("grad_final_"), .tape = &tape}, grad,
                     call.context);
    if (fixed()) sum_tokens(grad.log_decay, like("log_decay"));
  }

  /// A decay of the head is shared by all its tokens.
  static void sum_tokens(const View<T, 3>& from, const View<T, 1>& to) {
    for (Index h = 0; h < to.shape[0]; ++h) {
      double sum = 0;
      for (Index b = 0; b < from.shape[0]; ++b)
        for (Index t = 0; t < from.shape[1]; ++t) sum += double(from(b, t, h));
      to(h) = T(sum);
    }
  }

  Tensors operator()() {
    const ScalarDecayInputs<T> in = inputs();
    ScalarDecayTape<T> tape;
    const bool wanted = wants_gradients(call.inputs);
    scalar_decay(in, options, call.form,
                 {.o = output("o", "B T H V"), .final_states = final_states(), .tape = wanted ? &tape : nullptr}, call.context);
    if (wanted) gradients(in, tape);
    return std::move(out);
  }
};

class ScalarDecayLaw final : public Law {
 public:
  [[nodiscard]] std::string_view name() const override { return "scalar_decay"; }
  [[nodiscard]] std::string_view equation() const override {
    return "S = exp(log_decay) S + exp(log_input) k v^T, o = N( scale S^T q )";
  }
  [[nodiscard]] std::span<const TensorSpec> inputs() const override {
    static constexpr std::array<TensorSpec, 11> specs{{{"q", "B T Gq K", Domain::normal, true},
                                                       {"k", "B T Gk K", Domain::normal, true},
                                                       {"v", "B T Gv V", Domain::normal, true},
                                                       {"log_decay", "B T H|H", Domain::log_decay},
                                                       {"log_input", "B T H", Domain::log_input},
                                                       {"initial_state", "n H K V"},
                                                       {"initial_norm", "n H K"},
                                                       {"initial_max", "n H", Domain::scale},
                                                       {"initial_value_sum", "n H V"},
                                                       {"initial_count", "n", Domain::count},
                                                       {"offsets", "n+1", Domain::offsets}}};
    return specs;
  }
  [[nodiscard]] std::span<const TensorSpec> outputs() const override {
    static constexpr std::array<TensorSpec, 6> specs{{{"o", "B T H V"},
                                                      {"final_state", "n H K V"},
                                                      {"final_norm", "n H K"},
                                                      {"final_max", "n H", Domain::scale},
                                                      {"final_value_sum", "n H V"},
                                                      {"final_count", "n", Domain::count}}};
    return specs;
  }
  [[nodiscard]] std::span<const OptionSpec> options() const override {
    static constexpr std::array<OptionSpec, 4> specs{{{"scale", "K^-1/2", "factor of the queries"},
                                                      {"normaliser", "none", "none | sum | max (mLSTM) | subtract (InLine)"},
                                                      {"causal", "true", "a token sees no later one"},
                                                      {"eps", "0", "added to the divisor of sum and max"}}};
    return specs;
  }
  [[nodiscard]] std::span<const Form> forms() const override {
    static constexpr std::array all{Form::reference, Form::step, Form::chunk, Form::parallel};
    return all;
  }
  [[nodiscard]] std::span<const Case> cases() const override;
  [[nodiscard]] bool uses(std::string_view tensor, const Settings& settings, const Tensors&) const override {
    const ScalarDecayOptions o = options_from(settings);
    const bool causal = o.direction == Direction::causal;
    if (tensor == "log_decay") return causal && o.normaliser != Normaliser::subtract;
    if (tensor == "log_input") return o.normaliser != Normaliser::subtract;
    if (tensor.starts_with("initial_")) return causal && has_state(tensor.substr(8), o.normaliser);
    if (tensor.starts_with("final_")) return has_state(tensor.substr(6), o.normaliser);
    return true;
  }
  [[nodiscard]] double tolerance(std::string_view quantity) const override {
    // Most errors are below 20: outputs of `max` and their gradients divide by sums that may nearly cancel, and the gradient of a
    // head's fixed decay is a sum over all tokens that may, too. Plain sums of `subtract` come from sums about a mean, or about
    // the first token in the first chunk: where they cancel, the part about the mean does not.
    if (quantity == "grad_log_decay") return 1024;
    return quantity == "o" ? 128 : 256;
  }
  [[nodiscard]] Tensors run(const Call& call, const Sizes& sizes) const override {
    return call.inputs.at("q").type() == Type::f32 ? Run<float>(call, sizes)() : Run<double>(call, sizes)();
  }
  [[nodiscard]] std::vector<BenchCase> bench_cases(bool quick) const override { return scalar_decay_detail::bench_cases(quick); }
  [[nodiscard]] BenchWork prepare(const BenchCase& what) const override { return scalar_decay_detail::prepare_bench(what); }
  [[nodiscard]] Choice choose(const BenchCase& what) const override { return scalar_decay_detail::choose_bench(what); }
};

std::span<const Case> ScalarDecayLaw::cases() const {
  static const std::vector<Case> all = [] {
    const std::vector<std::string> gates{"log_decay", "log_input"};
    const auto states = [](std::string_view n, std::vector<std::string> with) {
      with.emplace_back("initial_state");
      if (n != "none") with.emplace_back("initial_norm");
      if (n == "max") with.emplace_back("initial_max");
      if (n == "subtract") with.insert(with.end(), {"initial_value_sum", "initial_count"});
      return with;
    };
    std::vector<Case> cases;
    for (std::string_view n : kNormalisers) {
      const std::string name(n);
      const Settings settings{{"normaliser", name}};
      const std::vector<std::string> positive =
          n == "sum" ? std::vector<std::string>{"q", "k", "initial_norm"} : std::vector<std::string>{};
      const auto add = [&](const std::string& what, std::vector<std::string> with, const Sizes& sizes = {}) {
        cases.push_back(
            {.label = name + what, .settings = settings, .with = std::move(with), .sizes = sizes, .positive = positive});
      };
      add("", {});
      add(", carried", states(n, {}));
      add(", grouped keys", states(n, {}), {{"Gq", 4}, {"Gk", 2}, {"Gv", 1}});
      add(", packed", states(n, {"offsets"}));
      add(", long", {}, {{"B", 1}, {"T", 300}, {"H", 1}, {"K", 40}, {"V", 33}});
      if (n != "max")
        cases.push_back({.label = name + ", global",
                         .settings = {{"normaliser", name}, {"causal", "false"}},
                         .with = n == "subtract" ? std::vector<std::string>{} : std::vector<std::string>{"log_input"},
                         .positive = positive});
      if (n == "subtract") continue;
      add(", fixed decay", states(n, {"log_decay:H"}));
      add(", decay", {"log_decay"});
      add(", gates", gates);
      add(", gates, carried", states(n, gates));
      add(", gates, grouped values", gates, {{"Gq", 2}, {"Gk", 1}, {"Gv", 4}});
      add(", gates, packed", {"log_decay", "log_input", "offsets"});
      if (n != "none")
        cases.push_back({.label = name + " with eps",
                         .settings = {{"normaliser", name}, {"eps", "0.5"}},
                         .with = gates,
                         .positive = positive});
    }
    return cases;
  }();
  return all;
}

}  // namespace

const Law& scalar_decay_law() {
  static const ScalarDecayLaw law;
  return law;
}

}  // namespace isomer

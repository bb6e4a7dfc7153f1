#include "isomer/laws/scalar_decay/scalar_decay_law.h"

#include <array>

#include "isomer/laws/equation_text.h"
#include "isomer/laws/option_table.h"
#include "isomer/laws/scalar_decay/scalar_decay_plan.h"
#include "isomer/laws/scalar_decay/scalar_decay_reference.h"

namespace isomer {

namespace {

using Normaliser = ScalarDecayOptions::Normaliser;
using Direction = ScalarDecayOptions::Direction;

// Places of the specs below.
enum In : std::size_t {
  q,
  k,
  v,
  log_decay,
  log_input,
  initial_state,
  initial_norm,
  initial_max,
  initial_value_sum,
  initial_count
};
enum Out : std::size_t { o, final_state, final_norm, final_max, final_value_sum, final_count };

constexpr std::array<std::string_view, 4> kNormalisers{"none", "sum", "max", "subtract"};
constexpr std::array<std::string_view, 2> kFlag{"true", "false"};

const OptionTable<ScalarDecayOptions>& kOptions() {
  static const OptionTable<ScalarDecayOptions> table(
      {option<&ScalarDecayOptions::scale>("scale", "factor of the queries", "K^-1/2"),
       option<&ScalarDecayOptions::normaliser>("normaliser", "none | sum | max (mLSTM) | subtract (InLine)", {}, kNormalisers),
       option<&ScalarDecayOptions::direction>("causal", "a token sees no later one", {}, kFlag),
       option<&ScalarDecayOptions::eps>("eps", "added to the divisor of sum and max")});
  return table;
}
ScalarDecayOptions options_from(const Settings& settings) { return kOptions().read(settings); }

/// Is the state (state, norm, max, value_sum, count) part of the normaliser?
bool has_part(std::string_view state, Normaliser n) {
  if (state == "norm") return n != Normaliser::none;
  if (state == "max") return n == Normaliser::max;
  if (state == "value_sum" || state == "count") return n == Normaliser::subtract;
  return true;
}

template <class T>
ScalarDecayInputs<T> inputs_of(const LawViews& x, std::span<const std::int64_t> offsets) {
  ScalarDecayInputs<T> in{.q = x[q],
                          .k = x[k],
                          .v = x[v],
                          .log_input = x[log_input],
                          .initial = {x[initial_state], x[initial_norm], x[initial_max], x[initial_value_sum], x[initial_count]},
                          .offsets = offsets};
  if (x[log_decay].rank != 1) {
    in.log_decay = x[log_decay];
    return in;
  }
  // A decay of the head is shared by all its tokens.
  const View<const T, 1> fixed = x[log_decay];
  in.log_decay = {fixed.data, {in.v.shape[0], in.v.shape[1], fixed.shape[0]}, {0, 0, fixed.stride[0]}};
  return in;
}

template <class T>
void sum_tokens(const View<T, 3>& from, const View<T, 1>& to) {
  for (Index h = 0; h < to.shape[0]; ++h) {
    double sum = 0;
    for (Index b = 0; b < from.shape[0]; ++b)
      for (Index t = 0; t < from.shape[1]; ++t) sum += double(from(b, t, h));
    to(h) = T(sum);
  }
}

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
  [[nodiscard]] std::span<const StateSpec> states() const override {
    static constexpr std::array<StateSpec, 5> specs{{{"state", initial_state, final_state},
                                                     {"norm", initial_norm, final_norm},
                                                     {"max", initial_max, final_max, scalar_decay_detail::kNothing},
                                                     {"value_sum", initial_value_sum, final_value_sum},
                                                     {"count", initial_count, final_count}}};
    return specs;
  }
  [[nodiscard]] std::span<const OptionSpec> options() const override { return kOptions().specs(); }
  [[nodiscard]] std::span<const Form> forms() const override {
    static constexpr std::array all{Form::reference, Form::step, Form::chunk, Form::parallel};
    return all;
  }
  [[nodiscard]] std::span<const Case> cases() const override;
  [[nodiscard]] double tolerance(std::string_view quantity) const override {
    // Most errors are below 20: outputs of `max` and their gradients divide by sums that may nearly cancel, and the gradient of a
    // head's fixed decay is a sum over all tokens that may, too. Plain sums of `subtract` come from sums about a mean, or about
    // the first token in the first chunk: where they cancel, the part about the mean does not.
    if (quantity == "grad_log_decay") return 1024;
    return quantity == "o" ? 128 : 256;
  }
  [[nodiscard]] std::shared_ptr<const BoundLaw> bind(const Settings& settings) const override {
    return std::make_shared<BoundScalarDecay>(options_from(settings));
  }
  [[nodiscard]] std::span<const BenchVariant> variants() const override {
    static const std::vector<BenchVariant> all{{.name = "linear"},
                                               {.name = "fixed", .with = {"log_decay"}},
                                               {.name = "gated", .with = {"log_decay"}},
                                               {"mlstm", {{"normaliser", "max"}}, {"log_decay", "log_input"}},
                                               {.name = "sum", .settings = {{"normaliser", "sum"}}},
                                               {.name = "subtract", .settings = {{"normaliser", "subtract"}}},
                                               {.name = "global", .settings = {{"causal", "false"}}}};
    return all;
  }
  [[nodiscard]] std::vector<BenchCase> bench_cases(bool quick) const override { return scalar_decay_detail::bench_cases(quick); }
  [[nodiscard]] BenchWork prepare(const BenchCase& what) const override { return scalar_decay_detail::prepare_bench(what); }
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

BoundScalarDecay::BoundScalarDecay(const ScalarDecayOptions& options) : options_(options) {}

Settings BoundScalarDecay::settings() const { return kOptions().write(options_); }

bool BoundScalarDecay::skips_empty_keys() const {
  return options_.normaliser == Normaliser::none || options_.normaliser == Normaliser::sum;
}

bool BoundScalarDecay::causal() const { return options_.direction == Direction::causal; }

bool BoundScalarDecay::uses(std::string_view tensor, Given) const {
  if (tensor == "log_decay") return causal() && options_.normaliser != Normaliser::subtract;
  if (tensor == "log_input") return options_.normaliser != Normaliser::subtract;
  if (tensor.starts_with("initial_")) return causal() && has_part(tensor.substr(8), options_.normaliser);
  if (tensor.starts_with("final_")) return has_part(tensor.substr(6), options_.normaliser);
  return true;
}

void BoundScalarDecay::forward(const LawViews& in, const LawViews& out, const LawRun& run) const {
  with_type(in[q].type, [&]<class T>() {
    scalar_decay<T>(inputs_of<T>(in, run.offsets), options_, run.form,
                    {.o = out[o],
                     .final_states = {out[final_state], out[final_norm], out[final_max], out[final_value_sum], out[final_count]},
                     .tape = run.tape != nullptr ? &run.tape->as<ScalarDecayTape<T>>() : nullptr},
                    run.context);
  });
}

void BoundScalarDecay::backward(const LawViews& in, const LawViews&, const LawViews& grad_out, const LawViews& grad_in,
                                const LawRun& run) const {
  with_type(in[q].type, [&]<class T>() {
    ScalarDecayGradients<T> grad{.q = grad_in[q], .k = grad_in[k], .v = grad_in[v], .log_input = grad_in[log_input]};
    grad.initial = {.state = grad_in[initial_state], .norm = grad_in[initial_norm], .value_sum = grad_in[initial_value_sum]};
    const ScalarDecayInputs<T> all = inputs_of<T>(in, run.offsets);
    Buffer<T> tokens;
    const bool fixed = grad_in[log_decay].rank == 1;
    if (fixed) {
      const auto [B, L, H] = all.log_decay.shape;
      tokens = Buffer<T>(B * L * H);
      grad.log_decay = contiguous(tokens.data(), {B, L, H});
    } else {
      grad.log_decay = grad_in[log_decay];
    }
    scalar_decay_vjp<T>(all, options_, run.form,
                        {.o = grad_out[o],
                         .final_states = {grad_out[final_state], grad_out[final_norm], {}, grad_out[final_value_sum], {}},
                         .tape = run.tape != nullptr ? &run.tape->as<ScalarDecayTape<T>>() : nullptr},
                        grad, run.context);
    if (fixed) sum_tokens<T>(grad.log_decay, grad_in[log_decay]);
  });
}

Choice BoundScalarDecay::plan(const LawSizes& s, Given, bool taped) const {
  return scalar_decay_detail::choose(options_, {.state = false, .tape = taped}, s.B * s.H, s.T, s.K, s.V);
}

std::string BoundScalarDecay::plan_reason(const LawSizes& sizes, const Choice& choice) const {
  if (!causal() && choice.form != Form::step)
    return "one sum over all tokens, read by each of them; a chunk is what a task takes";
  return BoundLaw::plan_reason(sizes, choice);
}

double BoundScalarDecay::flops(const LawSizes& s, Given, LawPass pass, Form form) const {
  // Chunks are counted at 64 whatever is used.
  const double state = double(s.K * s.V), pair = double(s.K + s.V), heads = double(s.B * s.T * s.H);
  if (pass == LawPass::backward) return heads * ((causal() ? 2.5 * 64 * pair : 0) + 8 * state);
  if (!causal()) return heads * 4 * state;
  if (pass == LawPass::step || form == Form::step) return heads * 5 * state;
  return heads * (form == Form::parallel ? double(s.T) * pair : 4 * state);
}

StateDimension BoundScalarDecay::state_dimension(const LawSizes& s, Given) const {
  // One more feature holds the sum of values.
  return {s.K + (options_.normaliser == Normaliser::subtract ? 1 : 0), s.H * s.V};
}

std::vector<std::string> BoundScalarDecay::equations(Given given) const {
  using enum ScalarDecayOptions::Normaliser;
  const std::string scale = equation_text::factor(options_.scale), read = scale + "S' q";
  if (options_.normaliser == subtract)
    return {std::string("o = mean(v) + ") + scale + "q . covariance(k, v),   over " +
            (causal() ? "tokens s <= t" : "all tokens")};
  const std::string in = given[log_input] ? "exp(log_input) k v'" : "k v'";
  const std::string old = given[log_decay] ? "exp(log_decay) S + " : "S + ";
  const std::string state = causal() ? "S = " + old + in : "S = sum over all tokens of " + in;
  if (options_.normaliser == none) return {state, "o = " + read};
  const std::string eps = options_.eps > 0 ? " + " + equation_text::number(options_.eps) : "";
  const std::string below = options_.normaliser == sum ? scale + "n . q" + eps : "max(|" + scale + "n . q|, 1)" + eps;
  return {state + ",   n = S with v = 1", "o = " + read + " / (" + below + ")"};
}

}  // namespace isomer

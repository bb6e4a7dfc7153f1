#include "isomer/laws/attention/attention_law.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "isomer/base/error.h"
#include "isomer/laws/equation_text.h"
#include "isomer/laws/option_table.h"

namespace isomer {

namespace {

using Kernel = AttentionOptions::Kernel;
using Normaliser = AttentionOptions::Normaliser;

// Places of the specs below.
enum In : std::size_t { q, k, v, log_forget, gate, bias };
enum Out : std::size_t { o, log_sum };

constexpr std::array<std::string_view, 2> kKernels{"exp", "taylor"}, kFlag{"true", "false"};
constexpr std::array<std::string_view, 7> kNormalisers{"sum", "l2", "rms", "layer", "count", "gate", "none"};

const OptionTable<AttentionOptions>& kOptions() {
  using O = AttentionOptions;
  static const OptionTable<O> table(
      {option<&O::scale>("scale", "factor of the logits", "K^-1/2"),
       option<&O::clamp>("clamp", "the largest logit; what is above is cut to it and gets no gradient"),
       option<&O::direction>("causal", "a query sees no later key", {}, kFlag),
       option<&O::window>("window", "keys a query sees, itself included; 0: all"),
       option<&O::sinks>("sinks", "first keys of a sequence that stay visible"),
       option<&O::block>("block", "a query sees its own block of so many keys and those beside it; 0: all"),
       option<&O::kernel>("kernel", "exp | taylor", {}, kKernels), option<&O::order>("order", "of the Taylor polynomial"),
       option<&O::normaliser>("normaliser", "sum | l2 | rms | layer | count | gate | none", {}, kNormalisers),
       option<&O::eps>("eps", "keeps the normaliser from dividing by zero", "sum 0, l2 1e-12, rms 1e-6, layer 1e-5")});
  return table;
}

AttentionOptions options_from(const Settings& settings) {
  const AttentionOptions options = kOptions().read(settings);
  require(!settings.contains("order") || options.kernel == Kernel::taylor, "attention", "expected order only with kernel=taylor");
  return options;
}

template <class T>
AttentionInputs<T> inputs_of(const LawViews& in, std::span<const std::int64_t> offsets) {
  return {
      .q = in[q], .k = in[k], .v = in[v], .log_forget = in[log_forget], .gate = in[gate], .bias = in[bias], .offsets = offsets};
}

template <class T>
AttentionOutputs<T> outputs_of(const LawViews& out, const LawRun& run) {
  return {.o = out[o], .log_sum = out[log_sum], .tape = run.tape != nullptr ? &run.tape->as<AttentionTape<T>>() : nullptr};
}

/// Keys that T queries see, all in all; they are the last of S positions.
double pairs(const AttentionOptions& options, Index T, Index S) {
  const bool causal = options.direction == AttentionOptions::Direction::causal;
  double sum = 0;
  for (Index t = S - T; t < S; ++t) {
    if (options.block > 0) {
      const Index block = std::min(options.block, S), own = t / block * block;
      sum += double(std::min(S, own + 2 * block) - std::min(S, std::max<Index>(0, own - block)));
      continue;
    }
    const Index first = options.window > 0 ? std::max<Index>(0, t - options.window + 1) : 0;
    const Index last = causal ? t : options.window > 0 ? std::min(S - 1, t + options.window - 1) : S - 1;
    sum += double(last - first + 1 + std::min(options.sinks, first));
  }
  return sum;
}

class AttentionLaw final : public Law {
 public:
  [[nodiscard]] std::string_view name() const override { return "attention"; }
  [[nodiscard]] std::string_view equation() const override {
    return "o = N( sum_s kernel(min(scale q.k_s, clamp)) exp(c_t - c_s + bias_(s-t)) v_s )";
  }
  [[nodiscard]] std::span<const TensorSpec> inputs() const override {
    static constexpr std::array<TensorSpec, 7> specs{{{"q", "B T Gq K", Domain::normal, true},
                                                      {"k", "B S Gk K", Domain::normal, true},
                                                      {"v", "B S Gv V", Domain::normal, true},
                                                      {"log_forget", "B S H", Domain::log_decay},
                                                      {"gate", "B T H", Domain::unit},
                                                      {"bias", "H N"},
                                                      {"offsets", "n+1", Domain::offsets}}};
    return specs;
  }
  [[nodiscard]] std::span<const TensorSpec> outputs() const override {
    static constexpr std::array<TensorSpec, 2> specs{{{"o", "B T H V"}, {"log_sum", "B T H", Domain::scale}}};
    return specs;
  }
  [[nodiscard]] std::span<const OptionSpec> options() const override { return kOptions().specs(); }
  [[nodiscard]] std::span<const StateSpec> states() const override {
    static constexpr std::array<StateSpec, 3> specs{
        {{"keys", k, StateSpec::kTokens}, {"values", v, StateSpec::kTokens}, {"forget", log_forget, StateSpec::kTokens}}};
    return specs;
  }
  [[nodiscard]] std::span<const Form> forms() const override {
    static constexpr std::array all{Form::reference, Form::step, Form::chunk, Form::parallel};
    return all;
  }
  [[nodiscard]] std::span<const Case> cases() const override;
  [[nodiscard]] double tolerance(std::string_view quantity) const override {
    // Logits of ±100 lose 100 epsilon by themselves; everything else stays within a tenth of this.
    return quantity.starts_with("grad_") ? 256 : 96;
  }
  [[nodiscard]] std::shared_ptr<const BoundLaw> bind(const Settings& settings) const override {
    return std::make_shared<BoundAttention>(options_from(settings));
  }
  [[nodiscard]] std::span<const BenchVariant> variants() const override {
    static const std::vector<BenchVariant> all{{.name = "causal"}, {.name = "window"}};
    return all;
  }
  [[nodiscard]] std::vector<BenchCase> bench_cases(bool quick) const override { return attention_detail::bench_cases(quick); }
  [[nodiscard]] BenchWork prepare(const BenchCase& what) const override { return attention_detail::prepare_bench(what); }
};

std::vector<Case> bias_cases() {
  return {
      {.label = "bias", .with = {"bias"}, .sizes = {{"N", 6}}},
      {.label = "bias, bidirectional", .settings = {{"causal", "false"}}, .with = {"bias"}, .sizes = {{"N", 9}}},
      {.label = "bias, bidirectional window",
       .settings = {{"causal", "false"}, {"window", "4"}},
       .with = {"bias"},
       .sizes = {{"N", 5}}},
      {.label = "bias, cross", .settings = {{"causal", "false"}}, .with = {"bias"}, .sizes = {{"S", 31}, {"N", 45}}},
      {.label = "bias, window and forget", .settings = {{"window", "6"}}, .with = {"bias", "log_forget"}, .sizes = {{"N", 4}}},
      {.label = "bias, earlier keys", .with = {"bias"}, .sizes = {{"S", 40}, {"N", 24}}},
      {.label = "bias, packed", .with = {"bias", "offsets"}, .sizes = {{"N", 7}}},
      {.label = "bias, packed, bidirectional",
       .settings = {{"causal", "false"}},
       .with = {"bias", "offsets"},
       .sizes = {{"H", 9}, {"N", 3}}},
      {.label = "bias, grouped keys, norm and clamp",
       .settings = {{"clamp", "0.25"}, {"normaliser", "l2"}},
       .with = {"bias"},
       .sizes = {{"Gq", 4}, {"Gk", 2}, {"Gv", 1}, {"N", 5}}},
      {.label = "bias, long heads",
       .settings = {{"causal", "false"}},
       .with = {"bias"},
       .sizes = {{"B", 1}, {"T", 300}, {"H", 1}, {"K", 16}, {"V", 24}, {"N", 257}}}};
}

std::span<const Case> AttentionLaw::cases() const {
  static const std::vector<Case> all = [] {
    std::vector<Case> cases{
        {.label = "softmax"},
        {.label = "long heads", .sizes = {{"B", 1}, {"T", 300}, {"H", 1}, {"K", 64}, {"V", 40}}},
        {.label = "bidirectional", .settings = {{"causal", "false"}}},
        {.label = "cross", .settings = {{"causal", "false"}}, .sizes = {{"S", 31}}},
        {.label = "bidirectional window", .settings = {{"causal", "false"}, {"window", "4"}}},
        {.label = "blocks", .settings = {{"causal", "false"}, {"block", "5"}}},
        {.label = "blocks, packed", .settings = {{"causal", "false"}, {"block", "3"}}, .with = {"offsets"}},
        {.label = "blocks, cross", .settings = {{"causal", "false"}, {"block", "4"}}, .sizes = {{"S", 31}}},
        {.label = "long blocks", .settings = {{"causal", "false"}, {"block", "70"}}, .sizes = {{"B", 1}, {"T", 400}, {"H", 1}}},
        {.label = "window", .settings = {{"window", "5"}}},
        {.label = "window and sinks", .settings = {{"window", "5"}, {"sinks", "3"}}},
        {.label = "long window and sinks",
         .settings = {{"window", "70"}, {"sinks", "5"}},
         .with = {"log_forget"},
         .sizes = {{"B", 1}, {"T", 400}}},
        {.label = "forget", .with = {"log_forget"}},
        {.label = "forget, window and sinks", .settings = {{"window", "6"}, {"sinks", "2"}}, .with = {"log_forget"}},
        {.label = "earlier keys", .with = {"log_forget"}, .sizes = {{"S", 40}}},
        {.label = "grouped keys", .sizes = {{"Gq", 4}, {"Gk", 2}, {"Gv", 1}}},
        {.label = "grouped values", .with = {"log_forget"}, .sizes = {{"Gq", 2}, {"Gk", 1}, {"Gv", 4}}},
        {.label = "packed", .with = {"offsets", "log_forget"}},
        {.label = "packed window", .settings = {{"window", "4"}, {"sinks", "1"}}, .with = {"offsets"}},
        {.label = "many heads, packed", .with = {"offsets", "log_forget"}, .sizes = {{"H", 9}, {"K", 20}}},
        {.label = "sum with eps", .settings = {{"eps", "0.5"}}},
        {.label = "taylor, sum with eps", .settings = {{"kernel", "taylor"}, {"eps", "0.5"}}},
        {.label = "clamp", .settings = {{"clamp", "0.25"}}},
        {.label = "clamp, bidirectional window", .settings = {{"clamp", "-0.5"}, {"causal", "false"}, {"window", "4"}}},
        {.label = "clamp, forget, window and sinks",
         .settings = {{"clamp", "0.25"}, {"window", "6"}, {"sinks", "2"}, {"normaliser", "l2"}},
         .with = {"log_forget"}},
        {.label = "clamp, gate and forget",
         .settings = {{"clamp", "0.25"}, {"normaliser", "gate"}},
         .with = {"gate", "log_forget"}},
        {.label = "clamp, taylor", .settings = {{"clamp", "0.25"}, {"kernel", "taylor"}}},
        {.label = "clamp, linear and forget",
         .settings = {{"clamp", "0.25"}, {"kernel", "taylor"}, {"order", "1"}, {"normaliser", "count"}},
         .with = {"log_forget"}},
    };
    std::ranges::move(bias_cases(), std::back_inserter(cases));
    for (std::string_view normaliser : kNormalisers) {
      const std::vector<std::string> with = normaliser == "gate" ? std::vector<std::string>{"gate"} : std::vector<std::string>{};
      for (std::string_view kernel : kKernels)
        cases.push_back({.label = std::string(kernel) + ", " + std::string(normaliser),
                         .settings = {{"kernel", std::string(kernel)}, {"normaliser", std::string(normaliser)}},
                         .with = with});
    }
    for (const char* order : {"0", "1", "4"})
      cases.push_back({.label = std::string("taylor of order ") + order,
                       .settings = {{"kernel", "taylor"}, {"order", order}, {"normaliser", "l2"}},
                       .with = {"log_forget"}});
    return cases;
  }();
  return all;
}

}  // namespace

const Law& attention_law() {
  static const AttentionLaw law;
  return law;
}

BoundAttention::BoundAttention(const AttentionOptions& options) : options_(options) {
  if (options_.kernel != Kernel::taylor) options_.order = AttentionOptions{}.order;
}

Settings BoundAttention::settings() const { return kOptions().write(options_); }

bool BoundAttention::counts_distances(Given given) const { return options_.window > 0 || options_.block > 0 || given[bias]; }

bool BoundAttention::causal() const { return options_.direction == AttentionOptions::Direction::causal; }

bool BoundAttention::uses(std::string_view tensor, Given) const {
  if (tensor == "gate") return options_.normaliser == Normaliser::gate;
  if (tensor == "log_forget") return causal();
  if (tensor == "bias") return options_.kernel == Kernel::exp && options_.sinks == 0;
  if (tensor == "log_sum") return options_.kernel == Kernel::exp && options_.normaliser == Normaliser::sum;
  return true;
}

void BoundAttention::forward(const LawViews& in, const LawViews& out, const LawRun& run) const {
  with_type(in[q].type, [&]<class T>() {
    attention<T>(inputs_of<T>(in, run.offsets), options_, run.form, outputs_of<T>(out, run), run.context);
  });
}

void BoundAttention::backward(const LawViews& in, const LawViews& out, const LawViews& grad_out, const LawViews& grad_in,
                              const LawRun& run) const {
  with_type(in[q].type, [&]<class T>() {
    attention_vjp<T>(inputs_of<T>(in, run.offsets), options_, run.form, outputs_of<T>(out, run), grad_out[o],
                     {.q = grad_in[q],
                      .k = grad_in[k],
                      .v = grad_in[v],
                      .log_forget = grad_in[log_forget],
                      .gate = grad_in[gate],
                      .bias = grad_in[bias]},
                     run.context);
  });
}

std::string BoundAttention::plan_reason(const LawSizes& sizes, const Choice& choice) const {
  if (choice.form == Form::step) return BoundLaw::plan_reason(sizes, choice);
  return "tiles of queries and keys; a softmax that runs along them never holds a row of all keys";
}

double BoundAttention::flops(const LawSizes& s, Given, LawPass pass, Form) const {
  const double seen = pass == LawPass::step ? double(s.S) : pairs(options_, s.T, s.S);
  const double once = double(s.B * s.H) * seen * 2.0 * double(s.K + s.V);
  return pass == LawPass::backward ? 2.5 * once : once;
}

StateSize BoundAttention::state_size(const LawSizes& s, Given given) const {
  const StateSize all = BoundLaw::state_size(s, given);
  return options_.window > 0 ? StateSize{.fixed = (options_.window + options_.sinks) * all.per_token} : all;
}

double BoundAttention::taped_floats(const LawSizes& s, Given) const { return double(s.H * s.V + s.H); }

StateDimension BoundAttention::state_dimension(const LawSizes& s, Given) const {
  if (options_.window > 0) return {options_.window + options_.sinks, s.H * s.V};
  return {1, s.H * s.V, true};
}

std::unique_ptr<LawStream> BoundAttention::start(Type type, const LawSizes& s) const {
  std::unique_ptr<LawStream> stream;
  with_type(type, [&]<class T>() {
    const typename AttentionState<T>::Shape shape{.B = s.B, .H = s.H, .Gk = s.Gk, .Gv = s.Gv, .K = s.K, .V = s.V};
    stream = std::make_unique<AttentionStream<T>>(AttentionState<T>(shape, options_));
  });
  return stream;
}

void BoundAttention::stream(const LawViews& in, const LawViews& out, LawStream& stream, Context& context) const {
  with_type(in[q].type, [&]<class T>() {
    attention_stream<T>(inputs_of<T>(in, {}), options_, static_cast<AttentionStream<T>&>(stream).state, {.o = out[o]}, context);
  });
}

std::vector<std::string> BoundAttention::equations(Given given) const {
  using equation_text::number, equation_text::factor;
  std::string seen = causal() ? "s <= t" : "all s";
  const std::string last = std::to_string(options_.window);
  if (options_.window > 0) seen = causal() ? "t - " + last + " < s <= t" : "|t - s| < " + last;
  const std::string block = std::to_string(options_.block);
  if (options_.block > 0) seen = "|floor(t / " + block + ") - floor(s / " + block + ")| <= 1";
  if (options_.sinks > 0) seen += " or s < " + std::to_string(options_.sinks);
  std::string logit = factor(options_.scale) + "q_t . k_s";
  if (options_.clamp < std::numeric_limits<double>::infinity()) logit = "min(" + logit + ", " + number(options_.clamp) + ")";
  const bool taylor = options_.kernel == Kernel::taylor;
  std::string weight = "w_ts = " + (taylor ? "taylor" + std::to_string(options_.order) : std::string("exp")) + "(" + logit + ")";
  if (given[log_forget]) weight += " exp(c_t - c_s),   c = running_sum(log_forget)";
  if (given[bias]) weight += " exp(bias_(s-t))";
  const std::string sum = "sum_s w_ts v_s";
  const std::array<std::string, kNormalisers.size()> read{sum + " / sum_s w_ts",
                                                          "l2_norm(" + sum + ")",
                                                          "rms_norm(" + sum + ")",
                                                          "layer_norm(" + sum + ")",
                                                          sum + " / count(s)",
                                                          "gate_t * " + sum + " / count(s)",
                                                          sum};
  return {weight + ",   " + seen, "o_t = " + read[std::size_t(options_.normaliser)]};
}

}  // namespace isomer

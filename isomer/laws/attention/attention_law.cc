#include "isomer/laws/attention/attention_law.h"

#include <array>

#include "isomer/laws/attention/attention.h"
#include "isomer/laws/named_call.h"

namespace isomer {

namespace {

constexpr std::array<std::string_view, 2> kKernels{"exp", "taylor"};
constexpr std::array<std::string_view, 7> kNormalisers{"sum", "l2", "rms", "layer", "count", "gate", "none"};

AttentionOptions options_from(const Settings& settings) {
  AttentionOptions o;
  if (settings.contains("scale")) o.scale = read_number(settings, "scale", 0);
  o.clamp = read_limit(settings, "clamp");
  if (settings.contains("eps")) o.eps = read_number(settings, "eps", 0);
  if (!read_bool(settings, "causal", true)) o.direction = AttentionOptions::Direction::bidirectional;
  o.window = read_size(settings, "window", 0);
  o.sinks = read_size(settings, "sinks", 0);
  o.kernel = AttentionOptions::Kernel(read_choice(settings, "kernel", kKernels));
  o.order = int(read_size(settings, "order", 2));
  o.normaliser = AttentionOptions::Normaliser(read_choice(settings, "normaliser", kNormalisers));
  require(!settings.contains("order") || o.kernel == AttentionOptions::Kernel::taylor, "attention",
          "expected order only with kernel=taylor");
  return o;
}

template <class T>
Tensors run_typed(const Call& call, const Sizes& sizes) {
  NamedCall<T> x{call, sizes};
  const AttentionInputs<T> in{.q = x.input("q"),
                              .k = x.input("k"),
                              .v = x.input("v"),
                              .log_forget = x.input("log_forget"),
                              .gate = x.input("gate"),
                              .offsets = x.offsets()};
  const AttentionOptions options = options_from(call.settings);
  AttentionTape<T> tape;
  AttentionOutputs<T> forward{.o = x.output("o", "B T H V"), .tape = &tape};
  if (options.kernel == AttentionOptions::Kernel::exp && options.normaliser == AttentionOptions::Normaliser::sum)
    forward.log_sum = x.output("log_sum", "B T H");
  attention(in, options, call.form, forward, call.context);
  if (!x.given("grad_o")) return std::move(x.out);
  attention_vjp(
      in, options, call.form, forward, View<const T, 4>(x.input("grad_o")),
      {.q = x.like("q"), .k = x.like("k"), .v = x.like("v"), .log_forget = x.like("log_forget"), .gate = x.like("gate")},
      call.context);
  return std::move(x.out);
}

class AttentionLaw final : public Law {
 public:
  [[nodiscard]] std::string_view name() const override { return "attention"; }
  [[nodiscard]] std::string_view equation() const override {
    return "o = N( sum_s kernel(min(scale q.k_s, clamp)) exp(c_t - c_s) v_s )";
  }
  [[nodiscard]] std::span<const TensorSpec> inputs() const override {
    static constexpr std::array<TensorSpec, 6> specs{{{"q", "B T Gq K", Domain::normal, true},
                                                      {"k", "B S Gk K", Domain::normal, true},
                                                      {"v", "B S Gv V", Domain::normal, true},
                                                      {"log_forget", "B S H", Domain::log_decay},
                                                      {"gate", "B T H", Domain::unit},
                                                      {"offsets", "n+1", Domain::offsets}}};
    return specs;
  }
  [[nodiscard]] std::span<const TensorSpec> outputs() const override {
    static constexpr std::array<TensorSpec, 2> specs{{{"o", "B T H V"}, {"log_sum", "B T H", Domain::scale}}};
    return specs;
  }
  [[nodiscard]] std::span<const OptionSpec> options() const override {
    static constexpr std::array<OptionSpec, 9> specs{
        {{"scale", "K^-1/2", "factor of the logits"},
         {"clamp", "inf", "the largest logit; what is above is cut to it and gets no gradient"},
         {"causal", "true", "a query sees no later key"},
         {"window", "0", "keys a query sees, itself included; 0: all"},
         {"sinks", "0", "first keys of a sequence that stay visible"},
         {"kernel", "exp", "exp | taylor"},
         {"order", "2", "of the Taylor polynomial"},
         {"normaliser", "sum", "sum | l2 | rms | layer | count | gate | none"},
         {"eps", "sum 0, l2 1e-12, rms 1e-6, layer 1e-5", "keeps the normaliser from dividing by zero"}}};
    return specs;
  }
  [[nodiscard]] std::span<const Form> forms() const override {
    static constexpr std::array all{Form::reference, Form::step, Form::chunk, Form::parallel};
    return all;
  }
  [[nodiscard]] std::span<const Case> cases() const override;
  [[nodiscard]] bool uses(std::string_view tensor, const Settings& settings, const Tensors&) const override {
    const AttentionOptions o = options_from(settings);
    if (tensor == "gate") return o.normaliser == AttentionOptions::Normaliser::gate;
    if (tensor == "log_forget") return o.direction == AttentionOptions::Direction::causal;
    if (tensor == "log_sum")
      return o.kernel == AttentionOptions::Kernel::exp && o.normaliser == AttentionOptions::Normaliser::sum;
    return true;
  }
  [[nodiscard]] double tolerance(std::string_view quantity) const override {
    // Logits of ±100 lose 100 epsilon by themselves; everything else stays within a tenth of this.
    return quantity.starts_with("grad_") ? 256 : 96;
  }
  [[nodiscard]] Tensors run(const Call& call, const Sizes& sizes) const override {
    return call.inputs.at("q").type() == Type::f32 ? run_typed<float>(call, sizes) : run_typed<double>(call, sizes);
  }
  [[nodiscard]] std::vector<BenchCase> bench_cases(bool quick) const override { return attention_detail::bench_cases(quick); }
  [[nodiscard]] BenchWork prepare(const BenchCase& what) const override { return attention_detail::prepare_bench(what); }
};

std::span<const Case> AttentionLaw::cases() const {
  static const std::vector<Case> all = [] {
    std::vector<Case> cases{
        {.label = "softmax"},
        {.label = "long heads", .sizes = {{"B", 1}, {"T", 300}, {"H", 1}, {"K", 64}, {"V", 40}}},
        {.label = "bidirectional", .settings = {{"causal", "false"}}},
        {.label = "cross", .settings = {{"causal", "false"}}, .sizes = {{"S", 31}}},
        {.label = "bidirectional window", .settings = {{"causal", "false"}, {"window", "4"}}},
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

}  // namespace isomer

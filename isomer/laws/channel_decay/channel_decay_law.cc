#include "isomer/laws/channel_decay/channel_decay_law.h"

#include <array>

#include "isomer/laws/channel_decay/channel_decay.h"
#include "isomer/laws/named_call.h"

namespace isomer {

namespace {

using Read = ChannelDecayOptions::Read;

constexpr std::array<std::string_view, 2> kReads{"after", "before"};

ChannelDecayOptions options_from(const Settings& settings) {
  ChannelDecayOptions o;
  if (settings.contains("scale")) o.scale = read_number(settings, "scale", 0);
  o.read = Read(read_choice(settings, "read", kReads));
  return o;
}

template <class T>
Tensors run_typed(const Call& call, const Sizes& sizes) {
  NamedCall<T> x{call, sizes};
  const ChannelDecayInputs<T> in{.q = x.input("q"),
                                 .k = x.input("k"),
                                 .v = x.input("v"),
                                 .log_decay = x.input("log_decay"),
                                 .bonus = x.input("bonus"),
                                 .initial_state = x.input("initial_state"),
                                 .offsets = x.offsets()};
  const ChannelDecayOptions options = options_from(call.settings);
  ChannelDecayTape<T> tape;
  const bool wanted = wants_gradients(call.inputs);
  channel_decay(
      in, options, call.form,
      {.o = x.output("o", "B T H V"), .final_state = x.output("final_state", "n H K V"), .tape = wanted ? &tape : nullptr},
      call.context);
  if (!wanted) return std::move(x.out);
  channel_decay_vjp(in, options, call.form, {.o = x.input("grad_o"), .final_state = x.input("grad_final_state"), .tape = &tape},
                    {.q = x.like("q"),
                     .k = x.like("k"),
                     .v = x.like("v"),
                     .log_decay = x.like("log_decay"),
                     .bonus = x.like("bonus"),
                     .initial_state = x.like("initial_state")},
                    call.context);
  return std::move(x.out);
}

class ChannelDecayLaw final : public Law {
 public:
  [[nodiscard]] std::string_view name() const override { return "channel_decay"; }
  [[nodiscard]] std::string_view equation() const override {
    return "S = diag(exp(log_decay)) S + k v^T, o = scale S^T q (read=before: of the old S, plus bonus)";
  }
  [[nodiscard]] std::span<const TensorSpec> inputs() const override {
    static constexpr std::array<TensorSpec, 7> specs{{{"q", "B T Gq K", Domain::normal, true},
                                                      {"k", "B T Gk K", Domain::normal, true},
                                                      {"v", "B T Gv V", Domain::normal, true},
                                                      {"log_decay", "B T H K", Domain::log_decay, true},
                                                      {"bonus", "H K"},
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
        {{"scale", "K^-1/2", "factor of the queries"},
         {"read", "after", "after | before (RWKV-6: the state before the token, plus bonus for the token)"}}};
    return specs;
  }
  [[nodiscard]] std::span<const Form> forms() const override {
    static constexpr std::array all{Form::reference, Form::step, Form::chunk, Form::parallel};
    return all;
  }
  [[nodiscard]] std::span<const Case> cases() const override;
  [[nodiscard]] bool uses(std::string_view tensor, const Settings& settings, const Tensors&) const override {
    return tensor != "bonus" || options_from(settings).read == Read::before;
  }
  [[nodiscard]] double tolerance(std::string_view quantity) const override {
    // Errors are below 20. The gradient of the bonus is a sum over all tokens that may nearly cancel.
    return quantity == "grad_bonus" ? 256 : 64;
  }
  [[nodiscard]] Tensors run(const Call& call, const Sizes& sizes) const override {
    return call.inputs.at("q").type() == Type::f32 ? run_typed<float>(call, sizes) : run_typed<double>(call, sizes);
  }
  [[nodiscard]] std::vector<BenchCase> bench_cases(bool quick) const override { return channel_decay_detail::bench_cases(quick); }
  [[nodiscard]] BenchWork prepare(const BenchCase& what) const override { return channel_decay_detail::prepare_bench(what); }
  [[nodiscard]] Choice choose(const BenchCase& what) const override { return channel_decay_detail::choose_bench(what); }
};

std::span<const Case> ChannelDecayLaw::cases() const {
  static const std::vector<Case> all = [] {
    std::vector<Case> cases;
    for (std::string_view read : kReads) {
      const std::string name(read);
      const auto add = [&](const std::string& what, const std::vector<std::string>& with, const Sizes& sizes = {}) {
        Case c{.label = name + what, .settings = {{"read", name}}, .with = with, .sizes = sizes};
        if (read == "before") c.with.emplace_back("bonus");
        cases.push_back(c);
      };
      add("", {});
      add(", carried", {"initial_state"});
      add(", packed", {"initial_state", "offsets"});
      add(", packed, fresh", {"offsets"});
      add(", grouped keys", {"initial_state"}, {{"Gq", 4}, {"Gk", 2}, {"Gv", 1}});
      add(", grouped values", {}, {{"Gq", 2}, {"Gk", 1}, {"Gv", 4}});
      add(", long", {}, {{"B", 1}, {"T", 300}, {"H", 1}, {"K", 40}, {"V", 33}});
      add(", many heads", {"initial_state"}, {{"B", 2}, {"T", 110}, {"H", 5}, {"K", 16}, {"V", 24}});
    }
    cases.push_back({.label = "before, no bonus", .settings = {{"read", "before"}}, .with = {"initial_state"}});
    cases.push_back({.label = "scale", .settings = {{"scale", "0.75"}}, .with = {"initial_state"}});
    return cases;
  }();
  return all;
}

}  // namespace

const Law& channel_decay_law() {
  static const ChannelDecayLaw law;
  return law;
}

}  // namespace isomer

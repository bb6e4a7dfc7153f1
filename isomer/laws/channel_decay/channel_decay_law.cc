#include "isomer/laws/channel_decay/channel_decay_law.h"

#include <array>

#include "isomer/laws/channel_decay/channel_decay_plan.h"
#include "isomer/laws/equation_text.h"
#include "isomer/laws/option_table.h"

namespace isomer {

namespace {

using Read = ChannelDecayOptions::Read;

// Places of the specs below.
enum In : std::size_t { q, k, v, log_decay, bonus, initial_state };
enum Out : std::size_t { o, final_state };

constexpr std::array<std::string_view, 2> kReads{"after", "before"};

const OptionTable<ChannelDecayOptions>& kOptions() {
  static const OptionTable<ChannelDecayOptions> table(
      {option<&ChannelDecayOptions::scale>("scale", "factor of the queries", "K^-1/2"),
       option<&ChannelDecayOptions::read>("read", "after | before (RWKV-6: the state before the token, plus bonus for the token)",
                                          {}, kReads)});
  return table;
}
ChannelDecayOptions options_from(const Settings& settings) { return kOptions().read(settings); }

template <class T>
ChannelDecayInputs<T> inputs_of(const LawViews& x, std::span<const std::int64_t> offsets) {
  return {.q = x[q],
          .k = x[k],
          .v = x[v],
          .log_decay = x[log_decay],
          .bonus = x[bonus],
          .initial_state = x[initial_state],
          .offsets = offsets};
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
  [[nodiscard]] std::span<const StateSpec> states() const override {
    static constexpr std::array<StateSpec, 1> specs{{{"state", initial_state, final_state}}};
    return specs;
  }
  [[nodiscard]] std::span<const OptionSpec> options() const override { return kOptions().specs(); }
  [[nodiscard]] std::span<const Form> forms() const override {
    static constexpr std::array all{Form::reference, Form::step, Form::chunk, Form::parallel};
    return all;
  }
  [[nodiscard]] std::span<const Case> cases() const override;
  [[nodiscard]] double tolerance(std::string_view quantity) const override {
    // Errors are below 20. The gradient of the bonus is a sum over all tokens that may nearly cancel.
    return quantity == "grad_bonus" ? 256 : 64;
  }
  [[nodiscard]] std::shared_ptr<const BoundLaw> bind(const Settings& settings) const override {
    return std::make_shared<BoundChannelDecay>(options_from(settings));
  }
  [[nodiscard]] std::span<const BenchVariant> variants() const override {
    static const std::vector<BenchVariant> all{{.name = "gla"},
                                               {.name = "rwkv6", .settings = {{"read", "before"}}, .with = {"bonus"}}};
    return all;
  }
  [[nodiscard]] std::vector<BenchCase> bench_cases(bool quick) const override { return channel_decay_detail::bench_cases(quick); }
  [[nodiscard]] BenchWork prepare(const BenchCase& what) const override { return channel_decay_detail::prepare_bench(what); }
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

BoundChannelDecay::BoundChannelDecay(const ChannelDecayOptions& options) : options_(options) {}

Settings BoundChannelDecay::settings() const { return kOptions().write(options_); }

bool BoundChannelDecay::uses(std::string_view tensor, Given) const { return tensor != "bonus" || options_.read == Read::before; }

void BoundChannelDecay::forward(const LawViews& in, const LawViews& out, const LawRun& run) const {
  with_type(in[q].type, [&]<class T>() {
    channel_decay<T>(inputs_of<T>(in, run.offsets), options_, run.form,
                     {.o = out[o],
                      .final_state = out[final_state],
                      .tape = run.tape != nullptr ? &run.tape->as<ChannelDecayTape<T>>() : nullptr},
                     run.context);
  });
}

void BoundChannelDecay::backward(const LawViews& in, const LawViews&, const LawViews& grad_out, const LawViews& grad_in,
                                 const LawRun& run) const {
  with_type(in[q].type, [&]<class T>() {
    channel_decay_vjp<T>(inputs_of<T>(in, run.offsets), options_, run.form,
                         {.o = grad_out[o],
                          .final_state = grad_out[final_state],
                          .tape = run.tape != nullptr ? &run.tape->as<ChannelDecayTape<T>>() : nullptr},
                         {.q = grad_in[q],
                          .k = grad_in[k],
                          .v = grad_in[v],
                          .log_decay = grad_in[log_decay],
                          .bonus = grad_in[bonus],
                          .initial_state = grad_in[initial_state]},
                         run.context);
  });
}

Choice BoundChannelDecay::plan(const LawSizes& s, Given, bool taped) const {
  return channel_decay_detail::choose({.state = false, .tape = taped}, s.B * s.H, s.T, s.K, s.V);
}

double BoundChannelDecay::flops(const LawSizes& s, Given, LawPass pass, Form form) const {
  // Chunks are counted at 64 whatever is used.
  const double state = double(s.K * s.V), pair = double(s.K + s.V), heads = double(s.B * s.T * s.H);
  if (pass == LawPass::backward) return heads * (2.5 * 64 * pair + 8 * state);
  if (pass == LawPass::step || form == Form::step) return heads * 5 * state;
  return heads * (form == Form::parallel ? double(s.T) * pair : 4 * state);
}

StateDimension BoundChannelDecay::state_dimension(const LawSizes& s, Given) const {
  // Read before the update, one more feature holds the last value until it is written.
  return {s.K + (options_.read == Read::before ? 1 : 0), s.H * s.V};
}

std::vector<std::string> BoundChannelDecay::equations(Given given) const {
  const std::string scale = equation_text::factor(options_.scale), state = "S = diag(exp(log_decay)) S + k v'";
  if (options_.read == Read::after) return {state, "o = " + scale + "S' q"};
  const std::string now = given[bonus] ? " + (q . (bonus * k)) v" : "";
  return {"o = " + (scale.empty() || now.empty() ? scale + "S' q" + now : scale + "(S' q" + now + ")"), state};
}

}  // namespace isomer

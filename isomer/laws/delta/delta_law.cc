#include "isomer/laws/delta/delta_law.h"

#include <array>

#include "isomer/laws/delta/delta_plan.h"
#include "isomer/laws/equation_text.h"
#include "isomer/laws/option_table.h"

namespace isomer {

namespace {

// Places of the specs below.
enum In : std::size_t { q, k, v, beta, log_decay, a, b, initial_state };
enum Out : std::size_t { o, final_state };

const OptionTable<DeltaOptions>& kOptions() {
  static const OptionTable<DeltaOptions> table(
      {option<&DeltaOptions::scale>("scale", "factor of the outputs", "K^-1/2"),
       option<&DeltaOptions::l2norm>("l2norm", "q and k become x / sqrt(sum x^2 + 1e-6) first")});
  return table;
}
DeltaOptions options_from(const Settings& settings) { return kOptions().read(settings); }

template <class T>
DeltaInputs<T> inputs_of(const LawViews& x, std::span<const std::int64_t> offsets) {
  DeltaInputs<T> in{.q = x[q],
                    .k = x[k],
                    .v = x[v],
                    .beta = x[beta],
                    .a = x[a],
                    .b = x[b],
                    .initial_state = x[initial_state],
                    .offsets = offsets};
  if (x[log_decay].rank == 4)
    in.key_log_decay = x[log_decay];
  else
    in.log_decay = x[log_decay];
  return in;
}

template <class T>
DeltaGradients<T> gradients_of(const LawViews& x) {
  DeltaGradients<T> grad{
      .q = x[q], .k = x[k], .v = x[v], .beta = x[beta], .a = x[a], .b = x[b], .initial_state = x[initial_state]};
  if (x[log_decay].rank == 4)
    grad.key_log_decay = x[log_decay];
  else
    grad.log_decay = x[log_decay];
  return grad;
}

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
  [[nodiscard]] std::span<const StateSpec> states() const override {
    static constexpr std::array<StateSpec, 1> specs{{{"state", initial_state, final_state}}};
    return specs;
  }
  [[nodiscard]] std::span<const OptionSpec> options() const override { return kOptions().specs(); }
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
  [[nodiscard]] std::shared_ptr<const BoundLaw> bind(const Settings& settings) const override {
    return std::make_shared<BoundDelta>(options_from(settings));
  }
  [[nodiscard]] std::span<const BenchVariant> variants() const override {
    static const std::vector<BenchVariant> all{{.name = "plain", .with = {"beta"}},
                                               {.name = "gated", .with = {"beta", "log_decay"}},
                                               {.name = "kda", .with = {"beta", "log_decay"}},
                                               {.name = "rwkv7", .with = {"log_decay", "a", "b"}}};
    return all;
  }
  [[nodiscard]] std::vector<BenchCase> bench_cases(bool quick) const override { return delta_detail::bench_cases(quick); }
  [[nodiscard]] BenchWork prepare(const BenchCase& what) const override { return delta_detail::prepare_bench(what); }
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

BoundDelta::BoundDelta(const DeltaOptions& options) : options_(options) {}

Settings BoundDelta::settings() const { return kOptions().write(options_); }

std::span<const Axes> BoundDelta::axes(const TensorSpec& spec, Given given) const {
  // The low-rank rule decays every key by itself.
  const std::span<const Axes> all = spec.all();
  return all.size() == 2 && given[a] ? all.subspan(1) : all;
}

void BoundDelta::forward(const LawViews& in, const LawViews& out, const LawRun& run) const {
  with_type(in[q].type, [&]<class T>() {
    delta<T>(
        inputs_of<T>(in, run.offsets), options_, run.form,
        {.o = out[o], .final_state = out[final_state], .tape = run.tape != nullptr ? &run.tape->as<DeltaTape<T>>() : nullptr},
        run.context);
  });
}

void BoundDelta::backward(const LawViews& in, const LawViews&, const LawViews& grad_out, const LawViews& grad_in,
                          const LawRun& run) const {
  with_type(in[q].type, [&]<class T>() {
    delta_vjp<T>(inputs_of<T>(in, run.offsets), options_, run.form,
                 {.o = grad_out[o],
                  .final_state = grad_out[final_state],
                  .tape = run.tape != nullptr ? &run.tape->as<DeltaTape<T>>() : nullptr},
                 gradients_of<T>(grad_in), run.context);
  });
}

Choice BoundDelta::plan(const LawSizes& s, Given given, bool taped) const {
  return delta_detail::choose(given[a], taped, s.T, s.K, s.V);
}

double BoundDelta::flops(const LawSizes& s, Given given, LawPass pass, Form form) const {
  // Chunks are counted at 24 whatever is used.
  const double K = double(s.K), V = double(s.V), C = 24, heads = double(s.B * s.T * s.H);
  if (pass == LawPass::backward)
    return heads * (given[a] ? 12 * C * K + 8 * C * V + 16 * K * V : 6 * C * K + 4 * C * V + 12 * K * V);
  if (pass == LawPass::step || form == Form::step) return heads * 7 * K * V;
  return heads * (given[a] ? 8 : 6) * K * V;
}

std::vector<std::string> BoundDelta::equations(Given given) const {
  const std::string read = "o = " + equation_text::factor(options_.scale) + "S' q";
  if (given[a]) return {"S = diag(exp(log_decay)) S + b (a' S) + k v'", read};
  const std::string old = given[log_decay] ? "diag(exp(log_decay)) S" : "S";
  std::vector<std::string> lines{"S = D - beta k (k' D - v'),   D = " + old, read};
  if (options_.l2norm) lines.insert(lines.begin(), "q, k of length 1");
  return lines;
}

}  // namespace isomer

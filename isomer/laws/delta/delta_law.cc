#include "isomer/laws/delta/delta_law.h"

#include <array>

#include "isomer/laws/delta/delta.h"
#include "isomer/laws/named_call.h"

namespace isomer {

namespace {

template <class T>
Tensors run_named(const Call& call, const Sizes& sizes) {
  DeltaOptions options{.l2norm = read_bool(call.settings, "l2norm", false)};
  if (call.settings.contains("scale")) options.scale = read_number(call.settings, "scale", 0);
  NamedCall<T> x{call, sizes};
  const bool of_keys = x.given("log_decay") && call.inputs.at("log_decay").shape().size() == 4;
  DeltaInputs<T> in{.q = x.input("q"),
                    .k = x.input("k"),
                    .v = x.input("v"),
                    .beta = x.input("beta"),
                    .a = x.input("a"),
                    .b = x.input("b"),
                    .initial_state = x.input("initial_state"),
                    .offsets = x.offsets()};
  if (of_keys)
    in.key_log_decay = x.input("log_decay");
  else
    in.log_decay = x.input("log_decay");
  DeltaTape<T> tape;
  const bool wanted = wants_gradients(call.inputs);
  delta<T>(in, options, call.form,
           {.o = x.output("o", "B T H V"), .final_state = x.output("final_state", "n H K V"), .tape = wanted ? &tape : nullptr},
           call.context);
  if (!wanted) return std::move(x.out);
  DeltaGradients<T> grad{.q = x.like("q"),
                         .k = x.like("k"),
                         .v = x.like("v"),
                         .beta = x.like("beta"),
                         .a = x.like("a"),
                         .b = x.like("b"),
                         .initial_state = x.like("initial_state")};
  if (of_keys)
    grad.key_log_decay = x.like("log_decay");
  else
    grad.log_decay = x.like("log_decay");
  delta_vjp<T>(in, options, call.form, {.o = x.input("grad_o"), .final_state = x.input("grad_final_state"), .tape = &tape}, grad,
               call.context);
  return std::move(x.out);
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
    return call.inputs.at("q").type() == Type::f32 ? run_named<float>(call, sizes) : run_named<double>(call, sizes);
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

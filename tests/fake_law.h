#pragma once
// A law small enough to be read at a glance, for the tests of what is written once for all laws.
//   s_t = exp(log_decay_t) s_{t-1} + v_t,   o_t = scale · s_t,   count = tokens seen
// q and k only bring shapes. The gradients are those of v and of the initial state. `chunk` is wrong when broken=true.
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "isomer/laws/bound_law.h"
#include "isomer/laws/layout.h"

namespace isomer {

struct BoundFake final : BoundLaw {
  const Law& own;
  Settings set;

  BoundFake(const Law& law, const Settings& settings) : own(law), set(settings) {}
  [[nodiscard]] const Law& law() const override { return own; }
  [[nodiscard]] Settings settings() const override { return set; }
  [[nodiscard]] bool causal() const override { return read_bool(set, "causal", true); }
  [[nodiscard]] bool uses(std::string_view tensor, Given) const override {
    if (tensor.starts_with("initial_")) return causal();
    return tensor != "unused" && tensor != "extra";
  }
  // FakeLaw::run does the work.
  void forward(const LawViews&, const LawViews&, const LawRun&) const override {}
  void backward(const LawViews&, const LawViews&, const LawViews&, const LawViews&, const LawRun&) const override {}
  [[nodiscard]] double flops(const LawSizes&, Given, LawPass, Form) const override { return 1; }
  [[nodiscard]] std::vector<std::string> equations(Given) const override { return {"s = f s + v"}; }
};

class FakeLaw : public Law {
 public:
  [[nodiscard]] std::string_view name() const override { return "fake"; }
  [[nodiscard]] std::string_view equation() const override { return "s = f s + v"; }
  [[nodiscard]] std::span<const TensorSpec> inputs() const override {
    static constexpr std::array<TensorSpec, 9> specs{{{"q", "B T Gq K", Domain::normal, true},
                                                      {"k", "B S Gk K", Domain::normal, true},
                                                      {"v", "B T Gv V", Domain::normal, true},
                                                      {"log_decay", "B T H|H", Domain::log_decay},
                                                      {"gate", "B T H", Domain::unit},
                                                      {"initial_state", "n H V"},
                                                      {"initial_count", "n", Domain::count},
                                                      {"unused", "B T", Domain::log_input},
                                                      {"offsets", "n+1", Domain::offsets}}};
    return specs;
  }
  [[nodiscard]] std::span<const TensorSpec> outputs() const override {
    static constexpr std::array<TensorSpec, 4> specs{
        {{"o", "B T H V"}, {"final_state", "n H V"}, {"final_count", "n", Domain::count}, {"extra", "B T"}}};
    return specs;
  }
  [[nodiscard]] std::span<const OptionSpec> options() const override {
    static constexpr std::array<OptionSpec, 3> specs{
        {{"scale", "1", "of the output"}, {"causal", "true", "direction"}, {"broken", "false", "chunk goes wrong"}}};
    return specs;
  }
  [[nodiscard]] std::span<const Form> forms() const override {
    static constexpr std::array all{Form::reference, Form::step, Form::chunk};
    return all;
  }
  [[nodiscard]] std::span<const Case> cases() const override {
    static const std::vector<Case> all{
        {.label = "plain"},
        {.label = "decay", .with = {"log_decay", "initial_state", "initial_count"}, .sizes = {{"Gq", 4}, {"Gv", 2}}},
        {.label = "fixed", .settings = {{"scale", "0.5"}}, .with = {"log_decay:H"}, .positive = {"v"}},
        {.label = "packed", .with = {"offsets", "initial_state", "initial_count"}},
        {.label = "both ways", .settings = {{"causal", "false"}}, .sizes = {{"T", 0}}}};
    return all;
  }
  [[nodiscard]] double tolerance(std::string_view) const override { return 64; }

  [[nodiscard]] Tensors run(const Call& call, const Sizes& sizes) const override {
    Tensors given;
    for (const auto& [name, x] : call.inputs) {
      given[name] = Tensor(x.type, x.dims());
      std::memcpy(given[name].bytes(), x.data, std::size_t(x.size() * bytes_of(x.type)));
    }
    const Type type = given.at("v").type();
    if (type == Type::f64) return work<double>(call, given, sizes);
    if (call.form != Form::reference) return work<float>(call, given, sizes);
    for (auto& [name, x] : given)
      if (floating(x.type())) x = x.cast(Type::f64);
    Tensors out = work<double>(call, given, sizes);
    for (auto& [name, x] : out) x = x.cast(Type::f32);
    return out;
  }
  [[nodiscard]] std::shared_ptr<const BoundLaw> bind(const Settings& settings) const override {
    return std::make_shared<BoundFake>(*this, settings);
  }
  [[nodiscard]] std::span<const BenchVariant> variants() const override {
    static const std::vector<BenchVariant> all{{.name = "plain"}};
    return all;
  }
  [[nodiscard]] std::vector<BenchCase> bench_cases(bool) const override { return {{.subject = "fake", .variant = "plain"}}; }
  [[nodiscard]] BenchWork prepare(const BenchCase&) const override {
    return {.run = [](Context&) {}, .flops = 1, .state_bytes = 4};
  }

 private:
  template <class T>
  static Tensor zeros(std::vector<Index> shape) {
    Tensor x(type_of<T>, std::move(shape));
    std::fill_n(x.data<T>(), x.size(), T(0));
    return x;
  }

  template <class T>
  Tensors work(const Call& call, const Tensors& given, const Sizes& sizes) const {
    const auto input = [&](const char* name) {
      const auto found = given.find(name);
      return found == given.end() ? nullptr : &found->second;
    };
    const Index B = sizes.at("B"), L = sizes.at("T"), H = sizes.at("H"), V = sizes.at("V"), n = sizes.at("n"), G = sizes.at("Gv");
    const double scale = read_number(call.settings, "scale", 1);
    const bool broken = read_bool(call.settings, "broken", false) && call.form == Form::chunk;
    Tensors out;
    out["o"] = zeros<T>({B, L, H, V});
    out["final_state"] = input("initial_state") ? input("initial_state")->clone() : zeros<T>({n, H, V});
    out["final_count"] = input("initial_count") ? input("initial_count")->clone() : zeros<T>({n});
    const bool gradients = wants_gradients(given);
    for (const auto& [name, x] : given)
      if (gradients && !name.starts_with("grad_") && floating(x.type()) && name != "initial_count")
        out["grad_" + name] = zeros<T>(x.shape());
    const Tensor *offsets = input("offsets"), *decay = input("log_decay");
    const auto all = sequences("fake", B, L,
                               offsets ? std::span<const std::int64_t>(offsets->data<std::int64_t>(), std::size_t(n + 1))
                                       : std::span<const std::int64_t>());
    const auto factor = [&](Index row, Index h) {
      if (decay == nullptr) return T(1);
      return std::exp(decay->data<T>()[decay->shape().size() == 1 ? h : row * H + h]);
    };
    for (Index i = 0; i < n; ++i) {
      const Sequence s = all[std::size_t(i)];
      out["final_count"].template data<T>()[i] += T(s.length);
      for (Index h = 0; h < H; ++h)
        for (Index j = 0; j < V; ++j) {
          T& state = out["final_state"].template data<T>()[(i * H + h) * V + j];
          const auto source = [&](Index row) { return (row * G + group_of(h, H, G)) * V + j; };
          for (Index t = 0; t < s.length; ++t) {
            const Index row = s.batch * L + s.first + t;
            state = factor(row, h) * state + input("v")->template data<T>()[source(row)];
            out["o"].template data<T>()[(row * H + h) * V + j] = T(scale) * state + T(broken ? 1 : 0);
          }
          if (!gradients) continue;
          T grad = input("grad_final_state") ? input("grad_final_state")->template data<T>()[(i * H + h) * V + j] : T(0);
          for (Index t = s.length; t-- > 0;) {
            const Index row = s.batch * L + s.first + t;
            if (input("grad_o")) grad += T(scale) * input("grad_o")->template data<T>()[(row * H + h) * V + j];
            out["grad_v"].template data<T>()[source(row)] += grad;
            grad *= factor(row, h);
          }
          if (input("initial_state")) out["grad_initial_state"].template data<T>()[(i * H + h) * V + j] = grad;
        }
    }
    return out;
  }
};

}  // namespace isomer

// What `isomer bench` times of scalar_decay.
#include <array>
#include <cmath>
#include <memory>

#include "isomer/base/error.h"
#include "isomer/base/rng.h"
#include "isomer/laws/bench_work.h"
#include "isomer/laws/scalar_decay/scalar_decay.h"
#include "isomer/laws/scalar_decay/scalar_decay_law.h"
#include "isomer/laws/scalar_decay/scalar_decay_plan.h"

namespace isomer::scalar_decay_detail {

namespace {

using Normaliser = ScalarDecayOptions::Normaliser;

struct Variant {
  std::string_view name;
  Normaliser normaliser = Normaliser::none;
  bool decay = false, input = false, global = false;
};
constexpr std::array<Variant, 7> kVariants{{{"linear"},
                                            {"fixed", Normaliser::none, true},
                                            {"gated", Normaliser::none, true},
                                            {"mlstm", Normaliser::max, true, true},
                                            {"sum", Normaliser::sum},
                                            {"subtract", Normaliser::subtract},
                                            {"global", Normaliser::none, false, false, true}}};

const Variant& variant_named(const std::string& name) {
  for (const Variant& v : kVariants)
    if (v.name == name) return v;
  fail("scalar_decay", "expected the variant linear, fixed, gated, mlstm, sum, subtract or global, got ", name);
}

ScalarDecayOptions options_of(const Variant& variant) {
  using Direction = ScalarDecayOptions::Direction;
  return {.normaliser = variant.normaliser, .direction = variant.global ? Direction::global : Direction::causal};
}

/// Everything a timed call needs, kept between calls.
struct Work {
  const Variant& variant;
  ScalarDecayOptions options;
  Form form;
  Buffer<float> memory;
  ScalarDecayInputs<float> in;
  ScalarDecayOutputs<float> out;
  View<const float, 4> grad_o;
  ScalarDecayGradients<float> grad;
  ScalarDecayTape<float> tape;

  explicit Work(const BenchCase& c)
      : variant(variant_named(c.variant)),
        form(c.form),
        memory(c.B * c.T * c.H * (4 * c.K + 4 * c.V + 4) + c.B * c.H * (c.K * c.V + c.K + c.V + 1) + c.B) {
    options = options_of(variant);
    options.chunk = c.chunk;
    Rng rng(1);
    // Positive, so that the divisor of `sum` stays away from zero.
    for (float& x : memory) x = float(0.1 + rng.uniform());
    const auto tokens = [&](Index width) { return take<4>({c.B, c.T, c.H, width}); };
    in = {.q = tokens(c.K), .k = tokens(c.K), .v = tokens(c.V)};
    if (variant.decay) in.log_decay = gate(c, -0.1f);
    if (variant.input) in.log_input = gate(c, 1.0f);
    out.o = tokens(c.V);
    grad_o = tokens(c.V);
    grad = {.q = tokens(c.K), .k = tokens(c.K), .v = tokens(c.V)};
    if (variant.decay) grad.log_decay = take<3>({c.B, c.T, c.H});
    if (variant.input) grad.log_input = take<3>({c.B, c.T, c.H});
    if (variant.name == "fixed") in.log_decay.stride[0] = in.log_decay.stride[1] = 0;
    if (c.direction == "step") carry(c);
  }

 private:
  template <int R>
  View<float, R> take(const Index (&shape)[R]) {
    const auto view = contiguous(next_, shape);
    next_ += view.size();
    return view;
  }
  View<float, 3> gate(const BenchCase& c, float factor) {
    const View<float, 3> view = take<3>({c.B, c.T, c.H});
    for (Index i = 0; i < view.size(); ++i) view.data[i] *= factor;
    return view;
  }
  /// A stream: the state is moved on in place.
  void carry(const BenchCase& c) {
    ScalarDecayStates<float>& s = out.final_states;
    s.state = take<4>({c.B, c.H, c.K, c.V});
    if (variant.normaliser != Normaliser::none) s.norm = take<3>({c.B, c.H, c.K});
    if (variant.normaliser == Normaliser::max) s.max = take<2>({c.B, c.H});
    if (variant.normaliser == Normaliser::subtract) s.value_sum = take<3>({c.B, c.H, c.V});
    if (variant.normaliser == Normaliser::subtract) s.count = take<1>({c.B});
    in.initial = {s.state, s.norm, s.max, s.value_sum, s.count};
  }

  float* next_ = memory.data();
};

/// Flops of a token of one head, from the cost model in scalar_decay.h, of many heads. Chunks are counted at 64 whatever is used.
double flops(const BenchCase& c, double pair_factor, double state_factor) {
  const double pairs = c.variant == "global" ? 0 : 64.0 * double(c.K + c.V);
  return double(c.B * c.T * c.H) * (pair_factor * pairs + state_factor * double(c.K * c.V));
}

}  // namespace

std::vector<BenchCase> bench_cases(bool quick) {
  std::vector<BenchCase> all = bench_grid("scalar_decay", {"linear", "fixed", "gated", "mlstm"}, quick);
  for (BenchCase c : bench_grid("scalar_decay", {"sum", "subtract", "global"}, true))
    if (c.direction != "step") all.push_back(c);
  if (!quick)
    for (const BenchCase& c : long_sequence("scalar_decay", "gated")) all.push_back(c);
  return all;
}

Choice choose_bench(const BenchCase& c) {
  return choose(options_of(variant_named(c.variant)), {.state = false, .tape = wants_backward(c)}, c.B * c.H, c.T, c.K, c.V);
}

BenchWork prepare_bench(const BenchCase& c) {
  auto work = std::make_shared<Work>(c);
  if (wants_backward(c)) work->out.tape = &work->tape;
  const Normaliser n = work->variant.normaliser;
  const Index state =
      c.K * c.V + (n == Normaliser::none ? 0 : c.K) + (n == Normaliser::max ? 1 : 0) + (n == Normaliser::subtract ? c.V : 0);
  const BenchHalves halves{
      .forward = [work](Context& context) { scalar_decay(work->in, work->options, work->form, work->out, context); },
      .backward =
          [work](Context& context) {
            scalar_decay_vjp(work->in, work->options, work->form, {.o = work->grad_o, .tape = &work->tape}, work->grad, context);
          },
      .step_flops = flops(c, 0, 5),
      .forward_flops = flops(c, 0, 4),
      .backward_flops = flops(c, 2.5, 8)};
  return bench_work(c, halves, double(sizeof(float)) * double(c.H * state));
}

}  // namespace isomer::scalar_decay_detail

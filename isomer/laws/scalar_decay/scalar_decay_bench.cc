// What `isomer bench` times of scalar_decay.
#include <cmath>
#include <memory>

#include "isomer/base/rng.h"
#include "isomer/laws/bench_work.h"
#include "isomer/laws/scalar_decay/scalar_decay.h"
#include "isomer/laws/scalar_decay/scalar_decay_law.h"

namespace isomer::scalar_decay_detail {

namespace {

using Normaliser = ScalarDecayOptions::Normaliser;

/// Everything a timed call needs, kept between calls.
struct Work {
  ScalarDecayOptions options;
  Form form;
  Buffer<float> memory;
  ScalarDecayInputs<float> in;
  ScalarDecayOutputs<float> out;
  View<const float, 4> grad_o;
  ScalarDecayGradients<float> grad;
  ScalarDecayTape<float> tape;

  explicit Work(const BenchCase& c)
      : options(static_cast<const BoundScalarDecay&>(*BoundCase(scalar_decay_law(), c).bound).options()),
        form(c.form),
        memory(c.B * c.T * c.H * (4 * c.K + 4 * c.V + 4) + c.B * c.H * (c.K * c.V + c.K + c.V + 1) + c.B) {
    const bool decay = c.variant == "fixed" || c.variant == "gated" || c.variant == "mlstm", input = c.variant == "mlstm";
    options.chunk = c.chunk;
    Rng rng(1);
    // Positive, so that the divisor of `sum` stays away from zero.
    for (float& x : memory) x = float(0.1 + rng.uniform());
    const auto tokens = [&](Index width) { return take<4>({c.B, c.T, c.H, width}); };
    in = {.q = tokens(c.K), .k = tokens(c.K), .v = tokens(c.V)};
    if (decay) in.log_decay = gate(c, -0.1f);
    if (input) in.log_input = gate(c, 1.0f);
    out.o = tokens(c.V);
    grad_o = tokens(c.V);
    grad = {.q = tokens(c.K), .k = tokens(c.K), .v = tokens(c.V)};
    if (decay) grad.log_decay = take<3>({c.B, c.T, c.H});
    if (input) grad.log_input = take<3>({c.B, c.T, c.H});
    if (c.variant == "fixed") in.log_decay.stride[0] = in.log_decay.stride[1] = 0;
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
    if (options.normaliser != Normaliser::none) s.norm = take<3>({c.B, c.H, c.K});
    if (options.normaliser == Normaliser::max) s.max = take<2>({c.B, c.H});
    if (options.normaliser == Normaliser::subtract) s.value_sum = take<3>({c.B, c.H, c.V});
    if (options.normaliser == Normaliser::subtract) s.count = take<1>({c.B});
    in.initial = {s.state, s.norm, s.max, s.value_sum, s.count};
  }

  float* next_ = memory.data();
};

}  // namespace

std::vector<BenchCase> bench_cases(bool quick) {
  std::vector<BenchCase> all = bench_grid("scalar_decay", {"linear", "fixed", "gated", "mlstm"}, quick);
  for (BenchCase c : bench_grid("scalar_decay", {"sum", "subtract", "global"}, true))
    if (c.direction != "step") all.push_back(c);
  if (!quick)
    for (const BenchCase& c : long_sequence("scalar_decay", "gated")) all.push_back(c);
  return all;
}

BenchWork prepare_bench(const BenchCase& c) {
  auto work = std::make_shared<Work>(c);
  if (wants_backward(c)) work->out.tape = &work->tape;
  return bench_work(
      scalar_decay_law(), c,
      {.forward = [work](Context& context) { scalar_decay(work->in, work->options, work->form, work->out, context); },
       .backward =
           [work](Context& context) {
             scalar_decay_vjp(work->in, work->options, work->form, {.o = work->grad_o, .tape = &work->tape}, work->grad, context);
           }});
}

}  // namespace isomer::scalar_decay_detail

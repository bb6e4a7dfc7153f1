// What `isomer bench` times of delta.
#include <array>
#include <cmath>
#include <memory>

#include "isomer/base/rng.h"
#include "isomer/laws/bench_work.h"
#include "isomer/laws/delta/delta.h"
#include "isomer/laws/delta/delta_law.h"

namespace isomer::delta_detail {

namespace {

constexpr std::array<std::string_view, 4> kVariants{"plain", "gated", "kda", "rwkv7"};

/// Everything a timed call needs, kept between calls.
struct Work {
  DeltaOptions options;
  Form form;
  Buffer<float> memory;
  DeltaInputs<float> in;
  DeltaOutputs<float> out;
  View<const float, 4> grad_o;
  DeltaGradients<float> grad;
  DeltaTape<float> tape;

  explicit Work(const BenchCase& c)
      : options{.chunk = c.chunk}, form(c.form), memory(c.B * c.T * c.H * (10 * c.K + 4 * c.V + 4) + c.B * c.H * c.K * c.V) {
    Rng rng(1);
    for (float& x : memory) x = float(rng.uniform());
    const auto keys = [&] { return take<4>({c.B, c.T, c.H, c.K}); };
    const auto values = [&] { return take<4>({c.B, c.T, c.H, c.V}); };
    const auto gate = [&] { return take<3>({c.B, c.T, c.H}); };
    in = {.q = unit(keys()), .k = unit(keys()), .v = values()};
    grad = {.q = keys(), .k = keys(), .v = values()};
    out.o = values();
    grad_o = values();
    if (c.variant == "rwkv7") {
      // The erased direction, removed in part; decays of at most 0.6 a token.
      const View<float, 4> kappa = unit(keys()), gated = keys();
      for (Index i = 0; i < kappa.size(); ++i) gated.data[i] *= -kappa.data[i];
      in.a = kappa, in.b = gated, in.key_log_decay = times(keys(), -0.6f);
      grad.a = keys(), grad.b = keys(), grad.key_log_decay = keys();
    } else {
      in.beta = gate(), grad.beta = gate();
    }
    if (c.variant == "gated") in.log_decay = times(gate(), -0.1f), grad.log_decay = gate();
    if (c.variant == "kda") in.key_log_decay = times(keys(), -0.1f), grad.key_log_decay = keys();
    if (c.direction != "step") return;
    // A stream: the state is moved on in place.
    out.final_state = take<4>({c.B, c.H, c.K, c.V});
    in.initial_state = out.final_state;
  }

 private:
  template <int R>
  View<float, R> take(const Index (&shape)[R]) {
    const auto view = contiguous(next_, shape);
    next_ += view.size();
    return view;
  }
  template <int R>
  static View<float, R> times(const View<float, R>& x, float factor) {
    for (Index i = 0; i < x.size(); ++i) x.data[i] *= factor;
    return x;
  }
  /// Rows of any sign and of length one.
  static View<float, 4> unit(const View<float, 4>& x) {
    const Index K = x.shape[3];
    for (float* row = x.data; row != x.data + x.size(); row += K) {
      float squares = 0;
      for (Index i = 0; i < K; ++i) row[i] -= 0.5f, squares += row[i] * row[i];
      for (Index i = 0; i < K; ++i) row[i] /= std::sqrt(squares);
    }
    return x;
  }

  float* next_ = memory.data();
};

}  // namespace

std::vector<BenchCase> bench_cases(bool quick) {
  std::vector<BenchCase> all = bench_grid("delta", {"plain", "gated", "kda", "rwkv7"}, quick);
  if (quick) return all;
  for (std::string_view variant : kVariants)
    for (BenchCase& c : long_sequence("delta", variant)) all.push_back(std::move(c));
  return all;
}

BenchWork prepare_bench(const BenchCase& c) {
  auto work = std::make_shared<Work>(c);
  if (wants_backward(c)) work->out.tape = &work->tape;
  return bench_work(delta_law(), c,
                    {.forward = [work](Context& context) { delta(work->in, work->options, work->form, work->out, context); },
                     .backward =
                         [work](Context& context) {
                           delta_vjp(work->in, work->options, work->form, {.o = work->grad_o, .tape = &work->tape}, work->grad,
                                     context);
                         }});
}

}  // namespace isomer::delta_detail

// What `isomer bench` times of attention.
#include <array>
#include <memory>

#include "isomer/base/rng.h"
#include "isomer/laws/attention/attention.h"
#include "isomer/laws/attention/attention_law.h"
#include "isomer/laws/bench_work.h"

namespace isomer::attention_detail {

namespace {

/// Everything a timed call needs, kept between calls.
struct Work {
  AttentionOptions options;
  Form form;
  Buffer<float> memory;
  AttentionInputs<float> in;
  AttentionOutputs<float> out;
  View<const float, 4> grad_o;
  AttentionGradients<float> grad;
  AttentionTape<float> tape;
  std::unique_ptr<AttentionState<float>> state;

  Work(const BenchCase& c, Index S) : form(c.form), memory(c.B * c.H * (3 * c.T + 2 * S) * (c.K + c.V)) {
    options.window = c.window;
    Rng rng(1);
    for (float& x : memory) x = float(rng.uniform() * 2 - 1);
    float* next = memory.data();
    const auto take = [&](Index rows, Index width) {
      const auto view = contiguous(next, {c.B, rows, c.H, width});
      next += view.size();
      return view;
    };
    in = {take(c.T, c.K), take(S, c.K), take(S, c.V)};
    out = {.o = take(c.T, c.V), .tape = &tape};
    grad_o = take(c.T, c.V);
    grad = {take(c.T, c.K), take(S, c.K), take(S, c.V)};
  }
};

}  // namespace

std::vector<BenchCase> bench_cases(bool quick) {
  std::vector<BenchCase> all = bench_grid("attention", {"causal"}, quick);
  for (BenchCase& c : all)
    if (c.direction == "step") c.S = 2048;
  for (BenchCase c : bench_grid("attention", {"window"}, true)) {
    if (c.direction == "step") continue;
    c.T = quick ? 2048 : 8192;
    c.window = 256;
    all.push_back(c);
  }
  if (!quick)
    for (const BenchCase& c : long_sequence("attention", "causal")) all.push_back(c);
  return all;
}

BenchWork prepare_bench(const BenchCase& c) {
  const Index S = c.direction == "step" ? std::max<Index>(c.S, 1) : c.T;
  auto work = std::make_shared<Work>(c, S);
  BenchWork bench =
      bench_work(attention_law(), c,
                 {.forward = [work](Context& context) { attention(work->in, work->options, work->form, work->out, context); },
                  .backward =
                      [work](Context& context) {
                        attention_vjp(work->in, work->options, work->form, work->out, work->grad_o, work->grad, context);
                      }});
  if (c.direction != "step") return bench;
  work->state =
      std::make_unique<AttentionState<float>>(AttentionState<float>::Shape{c.B, c.H, c.H, c.H, c.K, c.V}, work->options);
  const auto token = [](auto view, Index t) { return slice(view, 1, t, 1); };
  for (Index t = 0; t < S; ++t) work->state->append(token(work->in.k, t), token(work->in.v, t), {});
  // The state grows by a token a call; set it back now and then, so that what is timed stays a read of about S keys.
  bench.run = [work, token, start = *work->state](Context& context) {
    if (work->state->length() >= start.length() + 64) *work->state = start;
    attention_step<float>({token(work->in.q, 0), token(work->in.k, 0), token(work->in.v, 0)}, work->options, *work->state,
                          work->out, context);
  };
  return bench;
}

}  // namespace isomer::attention_detail

// What `isomer bench` times of delta.
#include <array>
#include <cmath>
#include <memory>

#include "isomer/base/error.h"
#include "isomer/base/rng.h"
#include "isomer/laws/delta/delta.h"
#include "isomer/laws/delta/delta_law.h"
#include "isomer/laws/delta/delta_plan.h"

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

/// Flops of a token of one head, from the cost model in delta.h. Chunks are counted at 24 whatever is used.
double flops(const BenchCase& c) {
  const double K = double(c.K), V = double(c.V), C = 24, tokens = double(c.B * c.T * c.H);
  const bool low_rank = c.variant == "rwkv7";
  const double forward = low_rank ? 4 * C * (K + V) + 8 * K * V : 2 * C * (K + V) + 6 * K * V;
  const double backward = low_rank ? 12 * C * K + 8 * C * V + 16 * K * V : 6 * C * K + 4 * C * V + 12 * K * V;
  if (c.direction == "step") return tokens * 7 * K * V;
  return tokens * (c.direction == "forward" ? forward : c.direction == "backward" ? backward : forward + backward);
}

}  // namespace

std::vector<BenchCase> bench_cases(bool quick) {
  std::vector<BenchCase> all;
  const auto add = [&](std::string_view variant, const char* direction, Index T, Index H, Index D) {
    const bool step = std::string_view(direction) == "step";
    all.push_back({.subject = "delta",
                   .variant = std::string(variant),
                   .form = step ? Form::step : Form::chunk,
                   .direction = direction,
                   .T = T,
                   .H = H,
                   .K = D,
                   .V = D});
  };
  for (std::string_view variant : kVariants) {
    for (Index D : quick ? std::vector<Index>{64} : std::vector<Index>{64, 128})
      for (Index T : quick ? std::vector<Index>{2048} : std::vector<Index>{512, 2048, 8192})
        for (const char* direction : {"forward", "backward", "forward+backward"}) add(variant, direction, T, 512 / D, D);
    add(variant, "step", 1, 8, 64);
    if (quick) continue;
    add(variant, "step", 1, 4, 128);
    for (const char* direction : {"forward", "backward"}) add(variant, direction, 16384, 1, 64);
  }
  return all;
}

Choice choose_bench(const BenchCase& c) {
  const bool taped = c.direction == "backward" || c.direction == "forward+backward";
  return choose(c.variant == "rwkv7", taped, c.T, c.K, c.V);
}

BenchWork prepare_bench(const BenchCase& c) {
  bool known = false;
  for (std::string_view variant : kVariants) known |= c.variant == variant;
  require(known, "delta", "expected the variant plain, gated, kda or rwkv7, got ", c.variant);
  auto work = std::make_shared<Work>(c);
  BenchWork bench;
  bench.state_bytes = double(sizeof(float)) * double(c.H * c.K * c.V);
  bench.flops = flops(c);
  const auto forward = [work](Context& context) { delta(work->in, work->options, work->form, work->out, context); };
  const auto backward = [work](Context& context) {
    delta_vjp(work->in, work->options, work->form, {.o = work->grad_o, .tape = &work->tape}, work->grad, context);
  };
  if (c.direction == "step" || c.direction == "forward") {
    bench.run = forward;
    return bench;
  }
  work->out.tape = &work->tape;
  if (c.direction == "backward") {
    auto ready = std::make_shared<bool>(false);
    bench.run = [=](Context& context) {
      if (!*ready) forward(context);
      *ready = true;
      backward(context);
    };
    return bench;
  }
  bench.run = [=](Context& context) {
    forward(context);
    backward(context);
  };
  return bench;
}

}  // namespace isomer::delta_detail

// What `isomer bench` times of channel_decay.
#include <memory>

#include "isomer/base/error.h"
#include "isomer/base/rng.h"
#include "isomer/laws/channel_decay/channel_decay.h"
#include "isomer/laws/channel_decay/channel_decay_law.h"
#include "isomer/laws/channel_decay/channel_decay_plan.h"

namespace isomer::channel_decay_detail {

namespace {

using Read = ChannelDecayOptions::Read;

/// Everything a timed call needs, kept between calls.
struct Work {
  ChannelDecayOptions options;
  Form form;
  Buffer<float> memory;
  ChannelDecayInputs<float> in;
  ChannelDecayOutputs<float> out;
  View<const float, 4> grad_o;
  ChannelDecayGradients<float> grad;
  ChannelDecayTape<float> tape;

  explicit Work(const BenchCase& c)
      : form(c.form), memory(c.B * c.T * c.H * (6 * c.K + 4 * c.V) + 2 * c.H * c.K + c.B * c.H * c.K * c.V) {
    require(c.variant == "gla" || c.variant == "rwkv6", "channel_decay", "expected the variant gla or rwkv6, got ", c.variant);
    const bool before = c.variant == "rwkv6";
    if (before) options.read = Read::before;
    options.chunk = c.chunk;
    Rng rng(1);
    for (float& x : memory) x = float(rng.normal());
    const auto tokens = [&](Index width) { return take<4>({c.B, c.T, c.H, width}); };
    in = {.q = tokens(c.K), .k = tokens(c.K), .v = tokens(c.V), .log_decay = decays(c, before ? 1.0 : 0.1)};
    if (before) in.bonus = take<2>({c.H, c.K});
    out.o = tokens(c.V);
    grad_o = tokens(c.V);
    grad = {.q = tokens(c.K), .k = tokens(c.K), .v = tokens(c.V), .log_decay = tokens(c.K)};
    if (before) grad.bonus = take<2>({c.H, c.K});
    if (c.direction == "step") {
      // A stream: the state is moved on in place.
      out.final_state = take<4>({c.B, c.H, c.K, c.V});
      in.initial_state = out.final_state;
    }
  }

 private:
  template <int R>
  View<float, R> take(const Index (&shape)[R]) {
    const auto view = contiguous(next_, shape);
    next_ += view.size();
    return view;
  }
  View<float, 4> decays(const BenchCase& c, double strongest) {
    const View<float, 4> view = take<4>({c.B, c.T, c.H, c.K});
    Rng rng(2);
    for (Index i = 0; i < view.size(); ++i) view.data[i] = float(-strongest * rng.uniform());
    return view;
  }

  float* next_ = memory.data();
};

/// Flops of a token of one head, from the cost model in channel_decay.h. Chunks are counted at 64 whatever is used.
double flops(const BenchCase& c, double pair_factor, double state_factor) {
  const double pairs = 64.0 * double(c.K + c.V);
  return double(c.B * c.T * c.H) * (pair_factor * pairs + state_factor * double(c.K * c.V));
}

}  // namespace

std::vector<BenchCase> bench_cases(bool quick) {
  std::vector<BenchCase> all;
  const auto add = [&](const char* variant, const char* direction, Index T, Index H, Index D) {
    const bool step = std::string_view(direction) == "step";
    all.push_back({.subject = "channel_decay",
                   .variant = variant,
                   .form = step ? Form::step : Form::chunk,
                   .direction = direction,
                   .T = T,
                   .H = H,
                   .K = D,
                   .V = D});
  };
  for (const char* variant : {"gla", "rwkv6"}) {
    for (Index D : quick ? std::vector<Index>{64} : std::vector<Index>{64, 128})
      for (Index T : quick ? std::vector<Index>{2048} : std::vector<Index>{512, 2048, 8192})
        for (const char* direction : {"forward", "backward"}) add(variant, direction, T, 512 / D, D);
    add(variant, "step", 1, 8, 64);
    if (!quick) add(variant, "step", 1, 4, 128);
  }
  if (!quick)
    for (const char* direction : {"forward", "backward"}) add("gla", direction, 16384, 1, 64);
  return all;
}

Choice choose_bench(const BenchCase& c) {
  const bool taped = c.direction == "backward" || c.direction == "forward+backward";
  return choose(taped, c.B * c.H, c.T, c.K, c.V);
}

BenchWork prepare_bench(const BenchCase& c) {
  auto work = std::make_shared<Work>(c);
  BenchWork bench;
  bench.state_bytes = double(sizeof(float)) * double(c.H * c.K * c.V);
  const auto forward = [work](Context& context) { channel_decay(work->in, work->options, work->form, work->out, context); };
  const auto backward = [work](Context& context) {
    channel_decay_vjp(work->in, work->options, work->form, {.o = work->grad_o, .tape = &work->tape}, work->grad, context);
  };
  if (c.direction == "step" || c.direction == "forward") {
    bench.run = forward;
    bench.flops = c.direction == "step" ? flops(c, 0, 5) : flops(c, 1, 4);
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
    bench.flops = flops(c, 2.5, 8);
    return bench;
  }
  bench.run = [=](Context& context) {
    forward(context);
    backward(context);
  };
  bench.flops = flops(c, 3.5, 12);
  return bench;
}

}  // namespace isomer::channel_decay_detail

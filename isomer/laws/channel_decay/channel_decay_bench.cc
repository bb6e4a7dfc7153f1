// What `isomer bench` times of channel_decay.
#include <memory>

#include "isomer/base/rng.h"
#include "isomer/laws/bench_work.h"
#include "isomer/laws/channel_decay/channel_decay.h"
#include "isomer/laws/channel_decay/channel_decay_law.h"

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

}  // namespace

std::vector<BenchCase> bench_cases(bool quick) {
  std::vector<BenchCase> all = bench_grid("channel_decay", {"gla", "rwkv6"}, quick);
  if (!quick)
    for (const BenchCase& c : long_sequence("channel_decay", "gla")) all.push_back(c);
  return all;
}

BenchWork prepare_bench(const BenchCase& c) {
  auto work = std::make_shared<Work>(c);
  if (wants_backward(c)) work->out.tape = &work->tape;
  return bench_work(
      channel_decay_law(), c,
      {.forward = [work](Context& context) { channel_decay(work->in, work->options, work->form, work->out, context); },
       .backward =
           [work](Context& context) {
             channel_decay_vjp(work->in, work->options, work->form, {.o = work->grad_o, .tape = &work->tape}, work->grad,
                               context);
           }});
}

}  // namespace isomer::channel_decay_detail

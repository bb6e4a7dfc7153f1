#include "isomer/kernels/elementwise/cumulative.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/elementwise/row_kernels.h"

namespace isomer {

namespace {

// Channels of a task: two pages of tokens in flight, and eight tasks for a width of 1024.
constexpr Index kChannels = 128;

enum class Direction { forward, back };

/// [B, T, H, D] as [B, T, 1, H·D] when heads follow each other.
template <class T>
View<T, 4> coalesced(View<T, 4> x) {
  return {x.data, {x.shape[0], x.shape[1], 1, x.shape[2] * x.shape[3]}, {x.stride[0], x.stride[1], 0, 1}};
}
template <class T>
bool joinable(View<T, 4> x) {
  return (x.shape[3] == 1 || x.stride[3] == 1) && (x.shape[2] == 1 || x.stride[2] == x.shape[3]);
}

/// Channels [begin, begin + count) of one head of one sequence, over all tokens.
struct Strip {
  Index b, h, begin, count;
};

template <class T>
struct Sweep {
  View<const T, 4> x;
  View<T, 4> y;
  Direction direction;
  Accumulate accumulate;
  bool turns = false;
};

/// Leaves whole turns out of what was summed.
template <class T>
void drop_turns(Index n, double* sums, T* y) {
  constexpr double kTurn = 2 * std::numbers::pi;
  for (Index c = 0; c < n; ++c) {
    if (std::abs(sums[c]) <= kTurn / 2) continue;
    sums[c] -= kTurn * std::nearbyint(sums[c] / kTurn);
    y[c] = T(sums[c]);
  }
}

template <class T>
void run_strip(const Sweep<T>& sweep, const Strip& strip, double* sums, Workspace& scratch, Isa isa) {
  const View<const T, 4> x = sweep.x;
  const View<T, 4> y = sweep.y;
  const Index n = strip.count, tokens = x.shape[1];
  const bool dense_in = n == 1 || x.stride[3] == 1, dense_out = n == 1 || y.stride[3] == 1;
  T* in_copy = scratch.take<T>(dense_in ? 0 : n);
  T* out_copy = scratch.take<T>(dense_out ? 0 : n);
  for (Index i = 0; i < tokens; ++i) {
    const Index t = sweep.direction == Direction::forward ? i : tokens - 1 - i;
    const T* in = x.at(strip.b, t, strip.h, strip.begin);
    T* out = y.at(strip.b, t, strip.h, strip.begin);
    for (Index c = 0; !dense_in && c < n; ++c) in_copy[c] = in[c * x.stride[3]];
    for (Index c = 0; !dense_out && c < n; ++c) out_copy[c] = sweep.accumulate == Accumulate::add ? out[c * y.stride[3]] : T(0);
    with_isa(isa, [&]<Isa I>() {
      RowKernels<T, I>::advance(n, dense_in ? in : in_copy, sums, dense_out ? out : out_copy, sweep.accumulate);
    });
    if (sweep.turns) drop_turns(n, sums, dense_out ? out : out_copy);
    for (Index c = 0; !dense_out && c < n; ++c) out[c * y.stride[3]] = out_copy[c];
  }
}

template <class T>
void run(Sweep<T> sweep, CumulativeStates states, Context& context) {
  const Index D = sweep.x.shape[3];
  if (joinable(sweep.x) && joinable(sweep.y)) {
    sweep.x = coalesced(sweep.x);
    sweep.y = coalesced(sweep.y);
  }
  const Index heads = sweep.x.shape[2], width = sweep.x.shape[3], strips = ceil_div(width, kChannels);
  context.parallel(sweep.x.shape[0] * heads * strips, [&](Index task, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    const Index begin = task % strips * kChannels;
    const Strip strip{task / strips / heads, task / strips % heads, begin, std::min(kChannels, width - begin)};
    double* sums = scratch.take<double>(strip.count);
    // The states keep their heads.
    const auto at = [&](auto view, Index c) -> decltype(auto) {
      const Index channel = strip.begin + c;
      return view(strip.b, strip.h + channel / D, channel % D);
    };
    for (Index c = 0; c < strip.count; ++c) sums[c] = states.initial.present() ? at(states.initial, c) : 0.0;
    run_strip(sweep, strip, sums, scratch, context.isa());
    for (Index c = 0; states.final.present() && c < strip.count; ++c) at(states.final, c) = sums[c];
  });
}

struct StateNames {
  const char *initial, *final;
};
void check_states(const char* op, const std::array<Index, 4>& x, CumulativeStates states, StateNames names) {
  const std::array<Index, 3> shape{x[0], x[2], x[3]};
  if (states.initial.present()) check_shape(op, names.initial, states.initial.shape, shape);
  if (states.final.present()) check_shape(op, names.final, states.final.shape, shape);
}

}  // namespace

template <class T>
void cumulative_sum(View<const T, 4> x, CumulativeStates states, View<T, 4> y, Context& context) {
  check_shape("cumulative_sum", "y of the shape of x,", y.shape, x.shape);
  check_states("cumulative_sum", x.shape, states, {"initial", "final"});
  run<T>({x, y, Direction::forward, Accumulate::set, states.turns}, states, context);
}

template <class T>
void cumulative_sum_vjp(View<const T, 4> dy, CumulativeStates states, View<T, 4> dx, Accumulate accumulate, Context& context) {
  check_shape("cumulative_sum_vjp", "dx of the shape of dy,", dx.shape, dy.shape);
  check_states("cumulative_sum_vjp", dy.shape, states, {"dfinal", "dinitial"});
  run<T>({dy, dx, Direction::back, accumulate}, states, context);
}

template void cumulative_sum(View<const float, 4>, CumulativeStates, View<float, 4>, Context&);
template void cumulative_sum(View<const double, 4>, CumulativeStates, View<double, 4>, Context&);
template void cumulative_sum_vjp(View<const float, 4>, CumulativeStates, View<float, 4>, Accumulate, Context&);
template void cumulative_sum_vjp(View<const double, 4>, CumulativeStates, View<double, 4>, Accumulate, Context&);

}  // namespace isomer

#pragma once
// The cumulative sum over tokens, kept in double: y_t = initial + x_0 + … + x_t, final = initial + all of them.
//
//   cumulative_sum<float>(x, {.initial = before, .final = after}, y, context);
//
// x, y [B, T, H, D], states [B, H, D] in double, each optional; strides are free, dense ones fast. y may be x, final may be
// initial. A sequence may be cut anywhere with the state carried: the result is bit-identical. T = 0 hands the state on.
#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/kernels/accumulate.h"

namespace isomer {

struct CumulativeStates {
  View<const double, 3> initial = {};
  View<double, 3> final = {};
  bool turns = false;  // sums are angles: whole turns of 2π are left out, so that y keeps the accuracy of T however long x is
};

template <class T>
void cumulative_sum(View<const T, 4> x, CumulativeStates states, View<T, 4> y, Context& context);

/// The sum from the end: dx_t = dfinal + dy_t + … + dy_{T−1}, dinitial = dfinal + all of them. `states.initial` is dfinal and
/// `states.final` is dinitial. dx may be dy (set).
template <class T>
void cumulative_sum_vjp(View<const T, 4> dy, CumulativeStates states, View<T, 4> dx, Accumulate accumulate, Context& context);

}  // namespace isomer

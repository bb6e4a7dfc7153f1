#pragma once
// Maps of rows: softmax over the last axis, and the second-order Taylor features of Based.
//
//   softmax<float>(x, y, context);                           // y = e^x / Σ e^x over D; y may be x
//   softmax_vjp<float>(y, dy, dx, Accumulate::set, context); // from y; dx may be dy
//   taylor_features<float>(x, features, context);            // x [B, T, H, d], features [B, T, H, taylor_size(d)]
//
// Features: 1; x_i d^(−1/4); x_i² / √(2d); x_i x_j / √d for i < j, row by row. Then φ(q)·φ(k) = 1 + z + z²/2 with
// z = q·k / √d. Any strides, a dense last axis fast; features and x do not overlap. A softmax of −inf alone is NaN.
#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/kernels/accumulate.h"

namespace isomer {

template <class T>
void softmax(View<const T, 4> x, View<T, 4> y, Context& context);
template <class T>
void softmax_vjp(View<const T, 4> y, View<const T, 4> dy, View<T, 4> dx, Accumulate accumulate, Context& context);

[[nodiscard]] constexpr Index taylor_size(Index d) { return 1 + d + d * (d + 1) / 2; }

template <class T>
void taylor_features(View<const T, 4> x, View<T, 4> y, Context& context);
template <class T>
void taylor_features_vjp(View<const T, 4> x, View<const T, 4> dy, View<T, 4> dx, Accumulate accumulate, Context& context);

}  // namespace isomer

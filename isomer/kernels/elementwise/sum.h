#pragma once
// Copies of views, and sums over some of their axes.
//
//   copy<float>(x, y, context);                                              // y = x, whatever the strides
//   add_to<float>(x, y, context);                                            // y += x
//   sum_to<float>({.x = x}, sums, Accumulate::set, context);                 // sums [1, 1, H, D] = Σ x over B and T
//   sum_to<float>({.x = dy, .weight = a}, db, Accumulate::add, context);     // db [B, T, H, 1] += Σ dy · a over D
//
// A view with stride 0 is a repeated one and may be read. x and y are the same view or do not overlap; y and the inputs of a sum
// do not overlap. Sums run in T over 64 rows or 512 columns and in double beyond, in an order set by shapes and strides alone.
// Cost: one pass over the memory.
#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/kernels/accumulate.h"

namespace isomer {

template <class T>
void copy(View<const T, 4> x, View<T, 4> y, Context& context);

/// y = y + x.
template <class T>
void add_to(View<const T, 4> x, View<T, 4> y, Context& context);

/// scale · Σ x · weight; an axis of size 1 in weight is repeated, an absent weight is 1.
template <class T>
struct SumInputs {
  View<const T, 4> x;
  View<const T, 4> weight = {};
  double scale = 1;
};

/// y has the shape of x but for axes of size 1, over which it is summed.
template <class T>
void sum_to(const SumInputs<T>& in, View<T, 4> y, Accumulate accumulate, Context& context);

/// y [B, T, H, 1] = Σ x² over D.
template <class T>
void sum_squares(View<const T, 4> x, View<T, 4> y, Context& context);
/// dx = 2 x dy.
template <class T>
void sum_squares_vjp(View<const T, 4> x, View<const T, 4> dy, View<T, 4> dx, Accumulate accumulate, Context& context);

}  // namespace isomer

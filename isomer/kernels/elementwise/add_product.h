#pragma once
// y = x + a · b in one pass; its gradients are those of a sum and of a product (sum.h).
//
//   add_product<float>(x, difference, mu, y, context);        // x, difference, y [B, T, H, D], mu [1, 1, H, D]
//
// Axes of size 1 are repeated; y has the larger size of each axis. Any strides, dense ones fast; y may be an operand of its
// shape.
#include "isomer/base/context.h"
#include "isomer/base/view.h"

namespace isomer {

template <class T>
void add_product(View<const T, 4> x, View<const T, 4> a, View<const T, 4> b, View<T, 4> y, Context& context);

}  // namespace isomer

#pragma once
// Sum, difference and product of two views, element by element, and their gradients.
//
//   binary<float>(Binary::multiply, x, weight, y, context);                  // x [B, T, H, D], weight [1, 1, H, D]
//   binary_vjp<float>(Binary::multiply, x, weight, dy, {.da = dx, .db = dweight, .accumulate_b = Accumulate::add}, context);
//
// An axis of size 1 in a or b is repeated; y has the larger size of each axis. Any strides, dense ones fast; y may be an operand
// of its shape. A gradient has the shape of its operand and is summed over the repeated axes (sum.h); it may not overlap another
// argument. Cost: one pass over the memory, and one for each gradient.
#include <cstdint>

#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/kernels/accumulate.h"

namespace isomer {

enum class Binary : std::uint8_t { add, subtract, multiply };

template <class T>
void binary(Binary f, View<const T, 4> a, View<const T, 4> b, View<T, 4> y, Context& context);

/// What binary_vjp writes; absent views are not computed.
template <class T>
struct BinaryGradients {
  View<T, 4> da = {}, db = {};
  Accumulate accumulate_a = Accumulate::set, accumulate_b = Accumulate::set;
};

/// Of a and b only the shapes are used unless f is multiply.
template <class T>
void binary_vjp(Binary f, View<const T, 4> a, View<const T, 4> b, View<const T, 4> dy, const BinaryGradients<T>& gradients,
                Context& context);

}  // namespace isomer

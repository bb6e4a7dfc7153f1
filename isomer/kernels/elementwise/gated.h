#pragma once
// A gate in one pass: y = f(g) · x, for SwiGLU (silu), GEGLU (gelu) and output gates.
//
//   gated<float>(Unary::silu, g, x, y, context);
//   gated_vjp<float>(Unary::silu, g, x, dy, {.dg = dg, .dx = dx}, context);
//
// f is one that is_gate() (sigmoid, silu, gelu); for other functions, and for other shapes of g, use unary.h and binary.h. All
// views have one shape, [B, T, H, D], and any strides, dense ones fast; g and x may be halves of one projection. y may be g or x;
// a gradient that is set may be any input, and the two do not overlap.
#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/kernels/accumulate.h"
#include "isomer/kernels/elementwise/functions.h"

namespace isomer {

template <class T>
void gated(Unary f, View<const T, 4> g, View<const T, 4> x, View<T, 4> y, Context& context);

/// What gated_vjp writes; absent views are not computed.
template <class T>
struct GatedGradients {
  View<T, 4> dg = {}, dx = {};
  Accumulate accumulate_g = Accumulate::set, accumulate_x = Accumulate::set;
};

template <class T>
void gated_vjp(Unary f, View<const T, 4> g, View<const T, 4> x, View<const T, 4> dy, const GatedGradients<T>& gradients,
               Context& context);

}  // namespace isomer

#pragma once
// A function of every element: y = f(x), and its gradient from x.
//
//   unary<float>(Unary::silu, {}, x, y, context);
//   unary<float>(Unary::softcap, {.a = 30}, x, y, context);
//   unary_vjp<float>(Unary::silu, {}, x, dy, dx, Accumulate::add, context);     // dx += f'(x) · dy
//
// x, y [B, T, H, D] with any strides, dense ones fast; y may be x, dx may be x or dy (set). Errors follow those of simd/math.h.
// Cost: one pass over the memory, and the function.
#include <cstdint>

#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/kernels/accumulate.h"

namespace isomer {

/// At a kink (relu, leaky_relu, max_with, min_with) the slope is that of the flat or lower side.
enum class Unary : std::uint8_t {
  identity,
  affine,  // a·x + b
  exp,
  log,
  sigmoid,
  log_sigmoid,
  silu,  // x · sigmoid(x)
  tanh,
  softplus,
  relu,
  leaky_relu,           // x, below 0 a·x
  elu_plus_one,         // x + 1, below 0 e^x
  gelu,                 // the form with tanh: x · sigmoid(2 √(2/π) (x + 0.044715 x³))
  softcap,              // a · tanh(x / a)
  one_minus_exp,        // 1 − e^x
  sqrt_one_minus_exp2,  // √(1 − e^2x), x ≤ 0; the slope of the root is at most 1000, as in RG-LRU
  square,
  sqrt,
  reciprocal,
  sin,
  cos,
  max_with,  // max(x, a)
  min_with,  // min(x, a)
  gelu_erf   // the exact GELU, x · Φ(x), Φ the normal distribution function
};

struct UnaryOptions {
  double a = 1, b = 0;
};

template <class T>
void unary(Unary f, UnaryOptions options, View<const T, 4> x, View<T, 4> y, Context& context);

template <class T>
void unary_vjp(Unary f, UnaryOptions options, View<const T, 4> x, View<const T, 4> dy, View<T, 4> dx, Accumulate accumulate,
               Context& context);

}  // namespace isomer

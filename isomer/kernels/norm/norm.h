#pragma once
// Normalisation of rows: RMS, layer and L2, with an optional scale and shift.
//
//   norm<float>(x, {.weight = w}, {.kind = Norm::rms}, y, context);     // x, y [B, T, H, D]: every head by itself
//
//   rms    x̂ = x / sqrt(mean x² + eps)
//   layer  x̂ = (x − mean x) / sqrt(mean (x − mean x)² + eps)
//   l2     x̂ = x / max(‖x‖, eps)
//   y = x̂ · weight + bias
//
// x, y [.., .., .., D] with any strides, normalised over D; with_leading_axes (rows.h) makes such a view of one of fewer axes.
// weight and bias are both [1, D], shared by all rows, or both [H, D] with H the third axis of x; absent: 1 and 0. So are
// their gradients.
// y may be x, and dx may be dy. Cost: forward 1 read and 1 write of x; backward reads x and dy, writes dx.
// Rows are independent and sums over rows run in blocks set by the shape: the number of threads changes nothing.
#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/kernels/accumulate.h"

namespace isomer {

enum class Norm { rms, layer, l2 };
[[nodiscard]] constexpr const char* name_of(Norm kind) {
  return kind == Norm::rms ? "rms" : kind == Norm::layer ? "layer" : "l2";
}

struct NormOptions {
  Norm kind = Norm::rms;
  double eps = 1e-6;
};

template <class T>
struct NormParameters {
  View<const T, 2> weight = {}, bias = {};
};

/// What norm_vjp sets, or adds to in the case of dx; absent views are not computed.
template <class T>
struct NormGradients {
  View<T, 4> dx = {};
  View<T, 2> dweight = {}, dbias = {};
  Accumulate accumulate_x = Accumulate::set;
};

template <class T>
void norm(View<const T, 4> x, NormParameters<T> parameters, NormOptions options, View<T, 4> y, Context& context);

/// Gradients from dy = ∂/∂y, given the x of the forward call. An L2 row within eps of zero is linear there: dx = dy·weight / eps.
template <class T>
void norm_vjp(View<const T, 4> x, View<const T, 4> dy, NormParameters<T> parameters, NormOptions options,
              NormGradients<T> gradients, Context& context);

}  // namespace isomer

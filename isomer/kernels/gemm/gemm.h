#pragma once
// The product of large matrices: C = alpha·A·B + beta·C + bias. Inside a kernel, for products of the size of a chunk, use
// tile_impl.h.
//
//   matmul(x, transposed(weight), y, context);                        // y [M, N] = x [M, K] · weightᵀ, weight [N, K]
//   matmul(x, transposed(weight), y, context, {.bias = bias});        // + bias [N] in every row, while the row is in the cache
//   matmul(transposed(x), dy, dweight, context, {.beta = 1.0f});      // adds to dweight
//
// A [M, K], B [K, N] and C [M, N] may have any strides; C may not overlap A or B, nor itself. beta = 0 does not read C.
// Cost: 2·M·N·K flops; up to 8 dense rows of A with a B of dense columns (a vector times the transpose of a weight): one read of
// B. Scratch: at most 4096 · 384 elements for B, and a block of A for each thread.
// Sums run over K in blocks of a size set by K alone, so the result does not depend on the number of threads.
// Why our own: docs/decisions/0001-gemm.md.
#include <cstdint>

#include "isomer/base/bf16.h"
#include "isomer/base/context.h"
#include "isomer/base/f16.h"
#include "isomer/base/view.h"

namespace isomer {

/// What becomes of the numbers of A before they are multiplied: nothing, or they are rounded to bf16, the nearest, of two equally
/// near the even one. Products of two bf16 are exact in float and are summed there; where a machine multiplies bf16 they cost
/// half as much.
enum class RowsOfA : std::uint8_t { exact, bf16 };

template <class T>
struct MatmulOptions {
  T alpha = 1;
  T beta = 0;
  View<const T, 1> bias = {};     // absent: none
  RowsOfA rows = RowsOfA::exact;  // bf16: for a B of bf16
};

void matmul(View<const float, 2> a, View<const float, 2> b, View<float, 2> c, Context& context,
            MatmulOptions<float> options = {});
void matmul(View<const double, 2> a, View<const double, 2> b, View<double, 2> c, Context& context,
            MatmulOptions<double> options = {});

/// The same with a B of weights that are stored in fewer bits, half as much to read: they are widened as they are read in place,
/// or as they are packed; sums are in float.
void matmul(View<const float, 2> a, View<const Bf16, 2> b, View<float, 2> c, Context& context, MatmulOptions<float> options = {});
void matmul(View<const float, 2> a, View<const F16, 2> b, View<float, 2> c, Context& context, MatmulOptions<float> options = {});

/// The same elements with rows and columns exchanged.
template <class T>
[[nodiscard]] View<T, 2> transposed(View<T, 2> x) {
  return {x.data, {x.shape[1], x.shape[0]}, {x.stride[1], x.stride[0]}};
}

}  // namespace isomer

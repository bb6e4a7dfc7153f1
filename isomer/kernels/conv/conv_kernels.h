#pragma once
// The rows of conv for one instruction set, as conv.cc sees them.
#include "isomer/base/cpu.h"
#include "isomer/base/index.h"

namespace isomer {

template <class T, Isa I>
struct ConvKernels {
  /// y[c] = start[c] + Σ_j weight[j·C + c] taps[j][c]; a null start or tap counts as zeros.
  static void filter(Index C, Index W, const T* const* taps, const T* weight, const T* start, T* y) noexcept;
  /// y = silu(y).
  static void silu(Index C, T* y) noexcept;
  /// z = silu'(z) · dy.
  static void silu_gradient(Index C, const T* dy, T* z) noexcept;
  /// dweight[j·C + c] += dy[c] taps[j][c], dbias[c] += dy[c].
  static void add_weight_gradient(Index C, Index W, const T* const* taps, const T* dy, T* dweight, T* dbias) noexcept;
};

}  // namespace isomer

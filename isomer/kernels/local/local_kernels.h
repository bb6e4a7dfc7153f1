#pragma once
// The rows of local_sum for one instruction set, as local.cc sees them.
#include "isomer/base/cpu.h"
#include "isomer/base/index.h"

namespace isomer {

template <class T, Isa I>
struct LocalKernels {
  /// y[d] = Σ_i a[i][d] b[i][d]
  static void sum(Index D, Index count, const T* const* a, const T* const* b, T* y) noexcept;
};

}  // namespace isomer

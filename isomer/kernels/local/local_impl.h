#pragma once
// The rows of local_sum over Vec; include vec_<isa>.h first.
#include "isomer/kernels/local/local_kernels.h"
#include "isomer/simd/vec.h"

namespace isomer {

template <class T, Isa I>
void LocalKernels<T, I>::sum(Index D, Index count, const T* const* a, const T* const* b, T* y) noexcept {
  using V = simd::Vec<T, I>;
  for (Index d = 0; d < D; d += V::lanes) {
    V total = V::zero();
    for (Index i = 0; i < count; ++i) total = fma(V::load(a[i] + d, D - d), V::load(b[i] + d, D - d), total);
    total.store(y + d, D - d);
  }
}

}  // namespace isomer

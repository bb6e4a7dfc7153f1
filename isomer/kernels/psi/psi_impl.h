#pragma once
// psi_kernels.h over Vec; include vec_<isa>.h first.
#include "isomer/kernels/psi/psi_kernels.h"
#include "isomer/simd/vec.h"

namespace isomer {

template <class T, Isa I>
void PsiKernels<T, I>::find(const PsiTable<T>& table, Index n, const T* x, std::int32_t* segments) noexcept {
  using V = simd::Vec<T, I>;
  const V one = V::set(T(1));
  for (Index i = 0; i < n; i += V::lanes) {
    // Whole blocks first, for a vector of numbers, then what is below in the next one. Sums without branches.
    const V numbers = V::load(x + i, n - i);
    V below = V::zero();
    for (Index b = 0; b < table.blocks(); ++b) below = below + select(V::set(table.block_ends[b]) < numbers, one, V::zero());
    T blocks[V::lanes];
    below.store(blocks);
    for (Index lane = 0; lane < V::lanes && i + lane < n; ++lane) {
      const auto block = std::int32_t(blocks[lane]);
      const T* corners = table.corners + 8 * block;
      std::int32_t count = 0;
      for (int c = 0; c < 8; ++c) count += corners[c] < x[i + lane] ? 1 : 0;
      segments[i + lane] = 8 * block + count;
    }
  }
}

}  // namespace isomer

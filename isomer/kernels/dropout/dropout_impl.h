#pragma once
// What the instruction sets share: a plain loop, for the compiler to make vectors of.
#include "isomer/kernels/dropout/dropout_kernels.h"

namespace isomer {

template <class T, Isa I>
void DropoutKernels<T, I>::apply(const DropoutMask& mask, Index count, const std::uint32_t* words, const T* x, bool add,
                                 T* y) noexcept {
  const T scale = T(mask.scale);
  const std::uint32_t threshold = mask.threshold;
  if (add)
    for (Index i = 0; i < count; ++i) y[i] += (words[i] >= threshold ? x[i] : T(0)) * scale;
  else
    for (Index i = 0; i < count; ++i) y[i] = (words[i] >= threshold ? x[i] : T(0)) * scale;
}

}  // namespace isomer

#pragma once
// The search of psi.h for one instruction set, as psi.cc sees it.
#include <cstdint>

#include "isomer/base/cpu.h"
#include "isomer/kernels/psi/psi.h"

namespace isomer {

template <class T, Isa I>
struct PsiKernels {
  /// The segments of n numbers: how many corners are below each of them. None is below a NaN.
  static void find(const PsiTable<T>& table, Index n, const T* x, std::int32_t* segments) noexcept;
};

}  // namespace isomer

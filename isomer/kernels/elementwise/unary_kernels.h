#pragma once
// The functions of unary.h for one instruction set, as unary.cc sees them.
#include "isomer/base/cpu.h"
#include "isomer/kernels/elementwise/cells.h"
#include "isomer/kernels/elementwise/unary.h"

namespace isomer {

struct UnaryJob {
  Unary f;
  UnaryOptions options;
  Accumulate accumulate;
};

template <class T, Isa I>
struct UnaryKernels {
  static void forward(const UnaryJob& job, Extent extent, Cells<const T> x, Cells<T> y) noexcept;
  /// y and f'(x) from one evaluation.
  static void with_slope(const UnaryJob& job, Extent extent, Cells<const T> x, Cells<T> y, Cells<T> slope) noexcept;
  static void backward(const UnaryJob& job, Extent extent, Cells<const T> x, Cells<const T> dy, Cells<T> dx) noexcept;
};

}  // namespace isomer

#pragma once
// The rows of norm for one instruction set, as norm.cc sees them.
#include "isomer/kernels/norm/norm.h"
#include "isomer/kernels/rows.h"

namespace isomer {

/// Row r has weight row r mod heads; weight and bias may be null.
template <class T>
struct NormJob {
  NormOptions options;
  Index D, heads;
  const T *weight, *bias;
  Accumulate accumulate_x = Accumulate::set;
};

template <class T, Isa I>
struct NormKernels {
  static void forward(const NormJob<T>& job, Rows<const T> x, Rows<T> y, RowRange range) noexcept;
  /// Sets rows of dx or adds to them; adds to dweight and dbias [heads, D]; each may be null.
  static void backward(const NormJob<T>& job, Rows<const T> x, Rows<const T> dy, Rows<T> dx, T* dweight, T* dbias,
                       RowRange range) noexcept;
};

}  // namespace isomer

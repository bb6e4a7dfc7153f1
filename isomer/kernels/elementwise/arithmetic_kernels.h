#pragma once
// Sums and products for one instruction set, as binary.cc and sum.cc see them.
#include "isomer/base/cpu.h"
#include "isomer/kernels/accumulate.h"
#include "isomer/kernels/elementwise/binary.h"
#include "isomer/kernels/elementwise/cells.h"

namespace isomer {

/// Rows and columns that are summed in T before the sum goes on in double.
inline constexpr Index kRowsInT = 64, kColumnsInT = 512;

/// scale · x · weight; without data the weight is 1.
template <class T>
struct Product {
  Cells<const T> x, weight;
  T scale = 1;
};

/// Blocks of rows × columns: how many, and how far apart in x and in the weight.
struct Blocks {
  Index count, x_step, weight_step;
};

template <class T, Isa I>
struct ArithmeticKernels {
  static void binary(Binary f, Extent extent, Cells<const T> a, Cells<const T> b, Cells<T> y) noexcept;
  static void product(const Product<T>& in, Extent extent, Cells<T> y, Accumulate accumulate) noexcept;
  /// sums[r] = Σ_c x · weight, unscaled.
  static void sum_columns(const Product<T>& in, Extent extent, double* sums) noexcept;
  /// sums[c] = Σ_r x · weight, unscaled; `part` is scratch for a row.
  static void sum_rows(const Product<T>& in, Extent extent, T* part, double* sums) noexcept;
  /// sums[r · columns + c] = Σ over at most kRowsInT such blocks x · weight, unscaled, in the order of memory; `part` is scratch
  /// for a block.
  static void sum_blocks(const Product<T>& in, Extent extent, const Blocks& blocks, T* part, double* sums) noexcept;
};

}  // namespace isomer

#pragma once
// Sums and products over Vec; include vec_<isa>.h first.
#include "isomer/kernels/elementwise/arithmetic_kernels.h"
#include "isomer/kernels/elementwise/lane_impl.h"

namespace isomer {

namespace internal {

/// g(f) with f(a, b) of vectors; G is a lambda of the kernels of one instruction set.
template <class V, class G>
ISOMER_INLINE void with_operation(Binary f, G g) {
  switch (f) {
    case Binary::add: return g([](V a, V b) { return a + b; });
    case Binary::subtract: return g([](V a, V b) { return a - b; });
    case Binary::multiply: return g([](V a, V b) { return a * b; });
  }
}

/// each(r, load) for every row, load(c, left) being x · weight there.
template <class T, Isa I, class F>
ISOMER_INLINE void each_row(const Product<T>& in, Index rows, F each) {
  using V = simd::Vec<T, I>;
  for (Index r = 0; r < rows; ++r) {
    const Lane<T, I> x(in.x, r);
    if (in.weight.data == nullptr) {
      each(r, [&](Index c, Index left) -> V { return x.load(c, left); });
    } else {
      const Lane<T, I> weight(in.weight, r);
      each(r, [&](Index c, Index left) -> V { return x.load(c, left) * weight.load(c, left); });
    }
  }
}

/// Rows of one vector at most: as many as there are lanes are summed together.
template <class T, Isa I>
ISOMER_INLINE void sum_short_rows(const Product<T>& in, Extent extent, double* sums) {
  using V = simd::Vec<T, I>;
  constexpr Index n = V::lanes;
  T block[n * n] = {}, part[n];
  each_row<T, I>(in, extent.rows, [&](Index r, auto load) {
    load(0, extent.columns).store(block + r % n * n);
    const Index count = r % n + 1;
    if (count < n && r + 1 < extent.rows) return;
    V::sum_rows(block, n).store(part);
    for (Index i = 0; i < count; ++i) sums[r + 1 - count + i] = double(part[i]);
  });
}

}  // namespace internal

template <class T, Isa I>
void ArithmeticKernels<T, I>::binary(Binary f, Extent extent, Cells<const T> a, Cells<const T> b, Cells<T> y) noexcept {
  using V = simd::Vec<T, I>;
  internal::with_operation<V>(f, [&](auto operation) {
    for (Index r = 0; r < extent.rows; ++r) {
      const internal::Lane<T, I> first(a, r), second(b, r);
      for (Index c = 0; c < extent.columns; c += V::lanes) {
        const Index left = extent.columns - c;
        operation(first.load(c, left), second.load(c, left)).store(y.data + r * y.row + c, left);
      }
    }
  });
}

template <class T, Isa I>
void ArithmeticKernels<T, I>::product(const Product<T>& in, Extent extent, Cells<T> y, Accumulate accumulate) noexcept {
  using V = simd::Vec<T, I>;
  const V scale = V::set(in.scale);
  // A number repeated in its row need not go by way of memory.
  if (in.weight.data == nullptr && in.x.column == 0 && accumulate == Accumulate::set) {
    for (Index r = 0; r < extent.rows; ++r) {
      const V value = scale * V::set(in.x.data[r * in.x.row]);
      for (Index c = 0; c < extent.columns; c += V::lanes) value.store(y.data + r * y.row + c, extent.columns - c);
    }
    return;
  }
  internal::each_row<T, I>(in, extent.rows, [&](Index r, auto load) {
    for (Index c = 0; c < extent.columns; c += V::lanes) {
      const Index left = extent.columns - c;
      internal::put(scale * load(c, left), accumulate, y.data + r * y.row + c, left);
    }
  });
}

template <class T, Isa I>
void ArithmeticKernels<T, I>::sum_columns(const Product<T>& in, Extent extent, double* sums) noexcept {
  using V = simd::Vec<T, I>;
  if (extent.columns <= V::lanes) return internal::sum_short_rows<T, I>(in, extent, sums);
  internal::each_row<T, I>(in, extent.rows, [&](Index r, auto load) {
    double total = 0;
    for (Index begin = 0; begin < extent.columns; begin += kColumnsInT) {
      const Index end = begin + kColumnsInT < extent.columns ? begin + kColumnsInT : extent.columns;
      V part = V::zero();
      for (Index c = begin; c < end; c += V::lanes) part = part + load(c, end - c);
      total += double(sum(part));
    }
    sums[r] = total;
  });
}

template <class T, Isa I>
void ArithmeticKernels<T, I>::sum_rows(const Product<T>& in, Extent extent, T* part, double* sums) noexcept {
  using V = simd::Vec<T, I>;
  for (Index c = 0; c < extent.columns; ++c) sums[c] = 0;
  internal::each_row<T, I>(in, extent.rows, [&](Index r, auto load) {
    const bool first = r % kRowsInT == 0, last = (r + 1) % kRowsInT == 0 || r + 1 == extent.rows;
    const Accumulate accumulate = first ? Accumulate::set : Accumulate::add;
    for (Index c = 0; c < extent.columns; c += V::lanes) {
      const Index left = extent.columns - c;
      internal::put(load(c, left), accumulate, part + c, left);
    }
    if (last)
      for (Index c = 0; c < extent.columns; ++c) sums[c] += double(part[c]);
  });
}

template <class T, Isa I>
void ArithmeticKernels<T, I>::sum_blocks(const Product<T>& in, Extent extent, const Blocks& blocks, T* part,
                                         double* sums) noexcept {
  using V = simd::Vec<T, I>;
  Product<T> block = in;
  for (Index n = 0; n < blocks.count; ++n) {
    const Accumulate accumulate = n == 0 ? Accumulate::set : Accumulate::add;
    internal::each_row<T, I>(block, extent.rows, [&](Index r, auto load) {
      for (Index c = 0; c < extent.columns; c += V::lanes) {
        const Index left = extent.columns - c;
        internal::put(load(c, left), accumulate, part + r * extent.columns + c, left);
      }
    });
    block.x.data += blocks.x_step;
    if (block.weight.data != nullptr) block.weight.data += blocks.weight_step;
  }
  for (Index i = 0; i < extent.rows * extent.columns; ++i) sums[i] = double(part[i]);
}

}  // namespace isomer

#pragma once
// Rows of losses over Vec; include vec_<isa>.h first.
#include <cmath>

#include "isomer/kernels/elementwise/arithmetic_kernels.h"
#include "isomer/kernels/elementwise/lane_impl.h"
#include "isomer/kernels/loss/loss_kernels.h"
#include "isomer/simd/math.h"

namespace isomer {

namespace internal {

/// The first of the largest of n > 0 numbers: blocks are compared, then one is searched.
template <class T, Isa I>
ISOMER_INLINE Index first_largest(Index n, const T* z) {
  constexpr Index kBlock = 128;
  T most = largest_of<T, I>(n < kBlock ? n : kBlock, z);
  Index at = 0;
  for (Index i = kBlock; i < n; i += kBlock) {
    const T other = largest_of<T, I>(n - i < kBlock ? n - i : kBlock, z + i);
    if (!(other > most)) continue;
    most = other;
    at = i;
  }
  const Index end = at + kBlock < n ? at + kBlock : n;
  // A block with NaN may have no such element.
  while (at + 1 < end && z[at] != most) ++at;
  return at;
}

}  // namespace internal

template <class T, Isa I>
void LossKernels<T, I>::finish_logits(Index n, T* z, const T* bias, T cap) noexcept {
  using V = simd::Vec<T, I>;
  if (bias == nullptr && cap == T(0)) return;
  const V limit = V::set(cap);
  for (Index i = 0; i < n; i += V::lanes) {
    V value = V::load(z + i, n - i);
    if (bias != nullptr) value = value + V::load(bias + i, n - i);
    if (cap != T(0)) value = limit * tanh(value / limit);
    value.store(z + i, n - i);
  }
}

template <class T, Isa I>
void LossKernels<T, I>::read_logits(Index n, const T* z, Index first, LogitRow<T>& row) noexcept {
  using V = simd::Vec<T, I>;
  const Index at = internal::first_largest<T, I>(n, z);
  if (z[at] > row.most) {
    row.sum *= std::exp(double(row.most) - double(z[at]));
    row.most = z[at];
    row.best = first + at;
  }
  const V most = V::set(row.most);
  double total = 0;
  for (Index begin = 0; begin < n; begin += kColumnsInT) {
    const Index end = begin + kColumnsInT < n ? begin + kColumnsInT : n;
    V part = V::zero();
    Index i = begin;
    for (; i + V::lanes <= end; i += V::lanes) part = part + exp_nonpositive(V::load(z + i) - most);
    if (i < end) {
      // By way of memory, for the lanes beyond the end hold e^(0 − most).
      T tail[V::lanes];
      exp_nonpositive(V::load(z + i, end - i) - most).store(tail);
      part = part + V::load(tail, end - i);
    }
    total += double(sum(part));
  }
  row.sum += total;
}

template <class T, Isa I>
void LossKernels<T, I>::gradient(Index n, T* z, T log_sum, T factor, T cap) noexcept {
  using V = simd::Vec<T, I>;
  const V top = V::set(log_sum), scale = V::set(factor), one = V::set(T(1));
  const V inverse = V::set(cap == T(0) ? T(0) : T(1) / cap);
  for (Index i = 0; i < n; i += V::lanes) {
    const V value = V::load(z + i, n - i), share = value * inverse;
    (scale * exp_nonpositive(value - top) * fnma(share, share, one)).store(z + i, n - i);
  }
}

template <class T, Isa I>
double LossKernels<T, I>::squared_error(Extent extent, Cells<const T> x, Cells<const T> target, T factor, Cells<T> dx) noexcept {
  using V = simd::Vec<T, I>;
  const V scale = V::set(factor);
  double total = 0;
  for (Index r = 0; r < extent.rows; ++r) {
    const internal::Lane<T, I> got(x, r), want(target, r);
    for (Index begin = 0; begin < extent.columns; begin += kColumnsInT) {
      const Index end = begin + kColumnsInT < extent.columns ? begin + kColumnsInT : extent.columns;
      V part = V::zero();
      for (Index c = begin; c < end; c += V::lanes) {
        const V difference = got.load(c, end - c) - want.load(c, end - c);
        part = fma(difference, difference, part);
        if (dx.data != nullptr) (scale * difference).store(dx.data + r * dx.row + c, end - c);
      }
      total += double(sum(part));
    }
  }
  return total;
}

}  // namespace isomer

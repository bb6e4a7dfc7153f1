#pragma once
// Rows over Vec; include vec_<isa>.h first.
#include "isomer/kernels/elementwise/lane_impl.h"
#include "isomer/kernels/elementwise/row_kernels.h"
#include "isomer/simd/math.h"

namespace isomer {

template <class T, Isa I>
void RowKernels<T, I>::softmax(Index D, const T* x, T* y) noexcept {
  using V = simd::Vec<T, I>;
  const V most = V::set(internal::largest_of<T, I>(D, x));
  for (Index d = 0; d < D; d += V::lanes) exp_nonpositive(V::load(x + d, D - d) - most).store(y + d, D - d);
  V sums = V::zero();
  for (Index d = 0; d < D; d += V::lanes) sums = sums + V::load(y + d, D - d);
  const V scale = V::set(T(1) / sum(sums));
  for (Index d = 0; d < D; d += V::lanes) (scale * V::load(y + d, D - d)).store(y + d, D - d);
}

template <class T, Isa I>
void RowKernels<T, I>::softmax_vjp(Index D, const T* y, const T* dy, T* dx, Accumulate accumulate) noexcept {
  using V = simd::Vec<T, I>;
  V along = V::zero();
  for (Index d = 0; d < D; d += V::lanes) along = fma(V::load(y + d, D - d), V::load(dy + d, D - d), along);
  const V mean = V::set(sum(along));
  for (Index d = 0; d < D; d += V::lanes)
    internal::put(V::load(y + d, D - d) * (V::load(dy + d, D - d) - mean), accumulate, dx + d, D - d);
}

template <class T, Isa I>
void RowKernels<T, I>::taylor(const TaylorScales<T>& scales, const T* x, T* y) noexcept {
  using V = simd::Vec<T, I>;
  const Index d = scales.d;
  const V linear = V::set(scales.linear), square = V::set(scales.square);
  y[0] = 1;
  for (Index i = 0; i < d; i += V::lanes) {
    const V xi = V::load(x + i, d - i);
    (linear * xi).store(y + 1 + i, d - i);
    (square * xi * xi).store(y + 1 + d + i, d - i);
  }
  T* pairs = y + 1 + 2 * d;
  for (Index i = 0; i < d; ++i) {
    const Index n = d - 1 - i;
    const V factor = V::set(scales.pair * x[i]);
    for (Index j = 0; j < n; j += V::lanes) (factor * V::load(x + i + 1 + j, n - j)).store(pairs + j, n - j);
    pairs += n;
  }
}

template <class T, Isa I>
void RowKernels<T, I>::taylor_vjp(const TaylorScales<T>& scales, const T* x, const T* dy, T* sums, T* dx,
                                  Accumulate accumulate) noexcept {
  using V = simd::Vec<T, I>;
  const Index d = scales.d;
  const V linear = V::set(scales.linear), square = V::set(T(2) * scales.square);
  for (Index i = 0; i < d; i += V::lanes)
    fma(linear, V::load(dy + 1 + i, d - i), square * V::load(x + i, d - i) * V::load(dy + 1 + d + i, d - i))
        .store(sums + i, d - i);
  const T* pairs = dy + 1 + 2 * d;
  for (Index i = 0; i < d; ++i) {
    const Index n = d - 1 - i;
    const V factor = V::set(scales.pair * x[i]);
    V along = V::zero();
    for (Index j = 0; j < n; j += V::lanes) {
      const V up = V::load(pairs + j, n - j);
      T* target = sums + i + 1 + j;
      along = fma(up, V::load(x + i + 1 + j, n - j), along);
      fma(factor, up, V::load(target, n - j)).store(target, n - j);
    }
    sums[i] += scales.pair * sum(along);
    pairs += n;
  }
  for (Index i = 0; i < d; i += V::lanes) internal::put(V::load(sums + i, d - i), accumulate, dx + i, d - i);
}

template <class T, Isa I>
void RowKernels<T, I>::advance(Index n, const T* x, double* sums, T* y, Accumulate accumulate) noexcept {
  // Plain loops: Vec does not convert between types, and the compiler vectorises these. No element depends on another.
  const bool add = accumulate == Accumulate::add;
#pragma GCC ivdep
  for (Index i = 0; i < n; ++i) sums[i] += double(x[i]);
  if (add) {
#pragma GCC ivdep
    for (Index i = 0; i < n; ++i) y[i] += T(sums[i]);
  } else {
#pragma GCC ivdep
    for (Index i = 0; i < n; ++i) y[i] = T(sums[i]);
  }
}

}  // namespace isomer

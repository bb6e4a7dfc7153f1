#pragma once
// The updates over Vec; include vec_<isa>.h first.
#include "isomer/kernels/optimiser/optimiser_kernels.h"
#include "isomer/simd/vec.h"

namespace isomer {

template <class T, Isa I>
void OptimiserKernels<T, I>::adamw(const UpdateArrays<T>& a, const AdamwCoefficients<T>& c) noexcept {
  using V = simd::Vec<T, I>;
  const V beta1 = V::set(c.beta1), rest1 = V::set(c.rest1), beta2 = V::set(c.beta2), rest2 = V::set(c.rest2);
  const V scale = V::set(c.gradient_scale), root = V::set(c.root), eps = V::set(c.eps);
  const V keep = V::set(c.keep), rate = V::set(c.rate);
  for (Index i = 0; i < a.size; i += V::lanes) {
    const Index n = a.size - i;
    const V g = V::load(a.gradient + i, n) * scale;
    const V m = fma(beta1, V::load(a.first + i, n), rest1 * g), v = fma(beta2, V::load(a.second + i, n), rest2 * g * g);
    m.store(a.first + i, n);
    v.store(a.second + i, n);
    fnma(rate, m / fma(sqrt(v), root, eps), keep * V::load(a.values + i, n)).store(a.values + i, n);
  }
}

template <class T, Isa I>
void OptimiserKernels<T, I>::sgd(const UpdateArrays<T>& a, const SgdCoefficients<T>& c) noexcept {
  using V = simd::Vec<T, I>;
  const V momentum = V::set(c.momentum), scale = V::set(c.gradient_scale), keep = V::set(c.keep), rate = V::set(c.rate);
  for (Index i = 0; i < a.size; i += V::lanes) {
    const Index n = a.size - i;
    const V m = fma(momentum, V::load(a.first + i, n), V::load(a.gradient + i, n) * scale);
    m.store(a.first + i, n);
    fnma(rate, m, keep * V::load(a.values + i, n)).store(a.values + i, n);
  }
}

template <class T, Isa I>
double OptimiserKernels<T, I>::sum_of_squares(const T* x, Index size) noexcept {
  using V = simd::Vec<T, I>;
  // Short enough that float loses no more than its last bits, long enough that conversions do not show.
  constexpr Index kStretch = 512;
  double total = 0;
  for (Index begin = 0; begin < size; begin += kStretch) {
    const Index end = begin + kStretch < size ? begin + kStretch : size;
    V even = V::zero(), odd = V::zero();
    for (Index i = begin; i < end; i += 2 * V::lanes) {
      const V a = V::load(x + i, end - i), b = V::load(x + i + V::lanes, end - i - V::lanes);
      even = fma(a, a, even);
      odd = fma(b, b, odd);
    }
    total += double(sum(even + odd));
  }
  return total;
}

}  // namespace isomer

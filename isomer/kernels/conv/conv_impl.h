#pragma once
// The rows of conv over Vec; include vec_<isa>.h first.
#include "isomer/kernels/conv/conv_kernels.h"
#include "isomer/kernels/elementwise/functions_impl.h"
#include "isomer/simd/vec.h"

namespace isomer {

template <class T, Isa I>
void ConvKernels<T, I>::filter(Index C, Index W, const T* const* taps, const T* weight, const T* start, T* y) noexcept {
  using V = simd::Vec<T, I>;
  for (Index c = 0; c < C; c += V::lanes) {
    const Index left = C - c;
    V sum = start == nullptr ? V::zero() : V::load(start + c, left);
    for (Index j = 0; j < W; ++j)
      if (taps[j] != nullptr) sum = fma(V::load(weight + j * C + c, left), V::load(taps[j] + c, left), sum);
    sum.store(y + c, left);
  }
}

template <class T, Isa I>
void ConvKernels<T, I>::silu(Index C, T* y) noexcept {
  using V = simd::Vec<T, I>;
  for (Index c = 0; c < C; c += V::lanes)
    internal::Silu::at(V::load(y + c, C - c), internal::Parameters<V>{}).value.store(y + c, C - c);
}

template <class T, Isa I>
void ConvKernels<T, I>::silu_gradient(Index C, const T* dy, T* z) noexcept {
  using V = simd::Vec<T, I>;
  for (Index c = 0; c < C; c += V::lanes) {
    const V slope = internal::Silu::at(V::load(z + c, C - c), internal::Parameters<V>{}).slope;
    (slope * V::load(dy + c, C - c)).store(z + c, C - c);
  }
}

template <class T, Isa I>
void ConvKernels<T, I>::add_weight_gradient(Index C, Index W, const T* const* taps, const T* dy, T* dweight, T* dbias) noexcept {
  using V = simd::Vec<T, I>;
  for (Index c = 0; c < C; c += V::lanes) {
    const Index left = C - c;
    const V up = V::load(dy + c, left);
    for (Index j = 0; j < W; ++j)
      if (taps[j] != nullptr) {
        T* target = dweight + j * C + c;
        fma(up, V::load(taps[j] + c, left), V::load(target, left)).store(target, left);
      }
    (up + V::load(dbias + c, left)).store(dbias + c, left);
  }
}

}  // namespace isomer

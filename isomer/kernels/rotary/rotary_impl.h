#pragma once
// The rows of rotary over Vec; include vec_<isa>.h first.
#include "isomer/kernels/rotary/rotary_kernels.h"
#include "isomer/simd/math.h"

namespace isomer {

template <class T, Isa I>
void RotaryKernels<T, I>::sincos(Index n, const double* angle, T* cos, T* sin) noexcept {
  using V = simd::Vec<double, I>;
  for (Index i = 0; i < n; i += V::lanes) {
    double c[V::lanes], s[V::lanes];
    const auto both = simd::sincos(V::load(angle + i, n - i));
    both.cos.store(c);
    both.sin.store(s);
    for (Index l = 0; l < V::lanes && i + l < n; ++l) {
      cos[i + l] = T(c[l]);
      sin[i + l] = T(s[l]);
    }
  }
}

template <class T, Isa I>
void RotaryKernels<T, I>::rotate(Index half, Turn<T> turn, const T* x, T* y) noexcept {
  using V = simd::Vec<T, I>;
  for (Index n = 0; n < half; n += V::lanes) {
    const Index left = half - n;
    const V c = V::load(turn.cos + n, left), s = V::load(turn.sin + n, left);
    const V a = V::load(x + n, left), b = V::load(x + half + n, left);
    fnma(b, s, a * c).store(y + n, left);
    fma(a, s, b * c).store(y + half + n, left);
  }
}

template <class T, Isa I>
void RotaryKernels<T, I>::rotate_back(Index half, Turn<T> turn, const T* x, T* y) noexcept {
  using V = simd::Vec<T, I>;
  for (Index n = 0; n < half; n += V::lanes) {
    const Index left = half - n;
    const V c = V::load(turn.cos + n, left), s = V::load(turn.sin + n, left);
    const V a = V::load(x + n, left), b = V::load(x + half + n, left);
    fma(b, s, a * c).store(y + n, left);
    fnma(a, s, b * c).store(y + half + n, left);
  }
}

template <class T, Isa I>
void RotaryKernels<T, I>::add_angle_gradient(Index half, Turn<T> turn, const T* x, const T* dy, T* dangle) noexcept {
  using V = simd::Vec<T, I>;
  for (Index n = 0; n < half; n += V::lanes) {
    const Index left = half - n;
    const V c = V::load(turn.cos + n, left), s = V::load(turn.sin + n, left);
    const V a = V::load(x + n, left), b = V::load(x + half + n, left);
    const V first = fnma(b, s, a * c), second = fma(a, s, b * c);
    const V gradient = fnma(V::load(dy + n, left), second, V::load(dy + half + n, left) * first);
    (V::load(dangle + n, left) + gradient).store(dangle + n, left);
  }
}

}  // namespace isomer

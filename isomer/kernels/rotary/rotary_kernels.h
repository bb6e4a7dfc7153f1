#pragma once
// The rows of rotary for one instruction set, as rotary.cc sees them.
#include "isomer/base/cpu.h"
#include "isomer/base/index.h"

namespace isomer {

/// Dense cosines and sines of the angles of one row; the sine negated turns back.
template <class T>
struct Turn {
  const T *cos, *sin;
};

template <class T, Isa I>
struct RotaryKernels {
  static void sincos(Index n, const double* angle, T* cos, T* sin) noexcept;
  /// y = x turned; x and y have 2·half elements and may be the same.
  static void rotate(Index half, Turn<T> turn, const T* x, T* y) noexcept;
  static void rotate_back(Index half, Turn<T> turn, const T* x, T* y) noexcept;
  /// dangle += dy[n + half] y[n] − dy[n] y[n + half] with y = x turned.
  static void add_angle_gradient(Index half, Turn<T> turn, const T* x, const T* dy, T* dangle) noexcept;
};

}  // namespace isomer

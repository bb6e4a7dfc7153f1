#pragma once
// Rows of features.h and cumulative.h for one instruction set, as features.cc and cumulative.cc see them.
#include "isomer/base/cpu.h"
#include "isomer/base/index.h"
#include "isomer/kernels/accumulate.h"

namespace isomer {

/// The factors of the Taylor features of d numbers.
template <class T>
struct TaylorScales {
  Index d;
  T linear, square, pair;
};

template <class T, Isa I>
struct RowKernels {
  static void softmax(Index D, const T* x, T* y) noexcept;
  static void softmax_vjp(Index D, const T* y, const T* dy, T* dx, Accumulate accumulate) noexcept;
  static void taylor(const TaylorScales<T>& scales, const T* x, T* y) noexcept;
  /// `sums` is scratch for d numbers.
  static void taylor_vjp(const TaylorScales<T>& scales, const T* x, const T* dy, T* sums, T* dx, Accumulate accumulate) noexcept;
  /// sums += x, then y = sums (or y += sums).
  static void advance(Index n, const T* x, double* sums, T* y, Accumulate accumulate) noexcept;
};

}  // namespace isomer

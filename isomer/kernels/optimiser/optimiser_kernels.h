#pragma once
// The updates for one instruction set, as optimiser.cc sees them.
#include "isomer/kernels/optimiser/optimiser.h"

namespace isomer {

/// w = keep · w − rate · m / (√v · root + eps)
template <class T>
struct AdamwCoefficients {
  T beta1, rest1, beta2, rest2, gradient_scale, root, eps, keep, rate;
};

template <class T>
struct SgdCoefficients {
  T momentum, gradient_scale, keep, rate;
};

template <class T, Isa I>
struct OptimiserKernels {
  static void adamw(const UpdateArrays<T>& a, const AdamwCoefficients<T>& c) noexcept;
  static void sgd(const UpdateArrays<T>& a, const SgdCoefficients<T>& c) noexcept;
  static double sum_of_squares(const T* x, Index size) noexcept;
};

}  // namespace isomer

#pragma once
// One step of an optimiser on a stretch of numbers, in one pass over them.
//
//   adamw<float>({.values = w, .gradient = g, .first = m, .second = v, .size = n},
//                {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .correction1 = 0.1, .correction2 = 0.05}, isa);
//
//   adamw  m = β₁ m + (1 − β₁) g,  v = β₂ v + (1 − β₂) g²,  w −= lr (m / c₁ / (√(v / c₂) + eps) + decay · w)
//   sgd    m = momentum · m + g,   w −= lr (m + decay · w)
// with g the gradient times gradient_scale. For the calling thread: the caller cuts a model's parameters into stretches and runs
// them side by side. Coefficients are rounded to T once. Cost: memory; adamw reads 4 and writes 3 numbers a parameter.
#include "isomer/base/cpu.h"
#include "isomer/base/index.h"

namespace isomer {

/// Dense arrays that do not overlap; sgd has no `second`.
template <class T>
struct UpdateArrays {
  T* values;
  const T* gradient;
  T* first;
  T* second = nullptr;
  Index size;
};

struct AdamwStep {
  double lr, beta1, beta2, eps, decay = 0, gradient_scale = 1;
  double correction1 = 1, correction2 = 1;  // c₁ = 1 − β₁ᵗ, c₂ = 1 − β₂ᵗ in step t = 1, 2, …
};

struct SgdStep {
  double lr, momentum, decay = 0, gradient_scale = 1;
};

template <class T>
void adamw(const UpdateArrays<T>& arrays, const AdamwStep& step, Isa isa);

template <class T>
void sgd(const UpdateArrays<T>& arrays, const SgdStep& step, Isa isa);

/// Σ x²: in T over 512 numbers, in double beyond.
template <class T>
[[nodiscard]] double sum_of_squares(const T* x, Index size, Isa isa);

}  // namespace isomer

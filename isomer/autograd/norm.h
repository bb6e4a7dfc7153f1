#pragma once
// Normalisation of rows as an op: y = x̂ · weight + bias (kernels/norm).
//   x [B, T, H, D]; weight and bias [1, 1, 1, D] or [1, 1, H, D], or absent → y [B, T, H, D]
#include "isomer/autograd/tape.h"
#include "isomer/kernels/norm/norm.h"

namespace isomer::ops {

template <class T>
[[nodiscard]] Var<T> norm(Tape<T>& tape, Var<T> x, NormOptions options, Var<T> weight = {}, Var<T> bias = {});

}  // namespace isomer::ops

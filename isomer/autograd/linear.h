#pragma once
// y = x · weightᵀ + bias over the last axis.
//   x [B, T, 1, K], weight [1, 1, N, K], bias [1, 1, 1, N] or absent → y [B, T, 1, N]
// A weight may be stored in another type than T (nn/parameters.h): it is widened as it is read, or x is rounded as it is.
#include "isomer/autograd/tape.h"

namespace isomer::ops {

template <class T>
[[nodiscard]] Var<T> linear(Tape<T>& tape, Var<T> x, Var<T> weight, Var<T> bias = {});

/// Every head by itself: x [B, T, H, K], weight [1, H, N, K], bias [1, 1, H, N] or absent → y [B, T, H, N]. A weight
/// [1, 1, N, K] or bias [1, 1, 1, N] is shared by all heads.
template <class T>
[[nodiscard]] Var<T> head_linear(Tape<T>& tape, Var<T> x, Var<T> weight, Var<T> bias = {});

}  // namespace isomer::ops

#pragma once
// Causal depthwise convolution as an op (kernels/conv).
//   x [B, T, H, D] of H·D channels; weight [1, 1, H·D, W]; bias [1, 1, 1, H·D] or absent → y [B, T, H, D]
#include "isomer/autograd/sequences.h"
#include "isomer/kernels/conv/conv.h"

namespace isomer::ops {

template <class T>
struct ConvVars {
  Var<T> x, weight, bias = {};
  bool silu = false;  // of the result
};

/// The state [n, 1, W − 1, H·D] holds the tokens before the first, oldest first.
template <class T>
[[nodiscard]] Var<T> conv(Tape<T>& tape, const ConvVars<T>& in, const Along<T>& along = {});

}  // namespace isomer::ops

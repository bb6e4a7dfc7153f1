#pragma once
// Causal depthwise convolution as an op (kernels/conv).
//   x [B, T, H, D] of H·D channels; weight [1, 1, H·D, W]; bias [1, 1, 1, H·D] or absent → y [B, T, H, D]
#include "isomer/autograd/tape.h"
#include "isomer/kernels/conv/conv.h"

namespace isomer {

/// `silu` of it, if asked. `state` [B, W − 1, H·D], if present, holds the tokens before the first, oldest first, and is
/// overwritten with the last ones; gradients take it for a constant.
template <class T>
[[nodiscard]] Var<T> conv(Tape<T>& tape, Var<T> x, Var<T> weight, Var<T> bias = {}, View<T, 3> state = {}, bool silu = false);

}  // namespace isomer

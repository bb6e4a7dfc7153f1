#pragma once
// Rotation of pairs of channels as an op (kernels/rotary): x [B, T, H, D] → y [B, T, H, D].
#include "isomer/autograd/sequences.h"
#include "isomer/kernels/rotary/rotary.h"

namespace isomer::ops {

/// By position · base^(−2n/D), scaled or not, each sequence from its own position on.
template <class T>
[[nodiscard]] Var<T> rotary(Tape<T>& tape, Var<T> x, const RotaryPositions& angles, const Sequences& sequences = {});
/// By angle [B, T, H or 1, D/2]; sequences and tokens may share it.
template <class T>
[[nodiscard]] Var<T> rotary(Tape<T>& tape, Var<T> x, Var<T> angle);

}  // namespace isomer::ops

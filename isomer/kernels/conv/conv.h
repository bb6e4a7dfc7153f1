#pragma once
// Causal depthwise convolution of a sequence: each channel is filtered by itself over the last W tokens.
//
//   conv<float>({.x = x, .weight = w, .state = state}, {}, {.y = y, .state = next}, context);
//
//   y_t[c] = bias[c] + Σ_j weight[c, j] x_{t−W+1+j}[c]        (the last tap weighs the token itself), or silu of it
//
// x, y [B, T, C]; weight [C, W]; bias [1, C] or absent; strides are free. Tokens before the first come from the state
// [S, W−1, C], oldest first, zeros when absent; the new state holds the last W−1 tokens. S is B, or the number of sequences that
// `offsets` (0 ≤ … ≤ T, one more than sequences) packs into the only row, B = 1; T = 0 hands the state on.
// y may not be x; the new state may not be the old. Cost: 2·B·T·C·W flops, x is read once.
// The number of threads changes nothing, and a sequence may be cut anywhere with the state carried: the result is bit-identical.
#include <cstdint>
#include <span>

#include "isomer/base/context.h"
#include "isomer/base/view.h"

namespace isomer {

template <class T>
struct ConvInputs {
  View<const T, 3> x;
  View<const T, 2> weight;
  View<const T, 2> bias = {};
  View<const T, 3> state = {};
  bool silu = false;
};

using ConvOffsets = std::span<const std::int64_t>;

template <class T>
struct ConvOutputs {
  View<T, 3> y;
  View<T, 3> state = {};
};

template <class T>
void conv(const ConvInputs<T>& in, ConvOffsets offsets, const ConvOutputs<T>& out, Context& context);

/// Gradients at y and at the final state; the second may be absent.
template <class T>
struct ConvUpstream {
  View<const T, 3> dy;
  View<const T, 3> dstate = {};
};

/// What conv_vjp sets; absent views are not computed. dx may not be dy; dstate, of the initial state, may not be the upstream
/// one.
template <class T>
struct ConvGradients {
  View<T, 3> dx = {};
  View<T, 2> dweight = {}, dbias = {};
  View<T, 3> dstate = {};
};

template <class T>
void conv_vjp(const ConvInputs<T>& in, ConvOffsets offsets, const ConvUpstream<T>& up, const ConvGradients<T>& gradients,
              Context& context);

}  // namespace isomer

#pragma once
// Losses as ops: a mean, [1, 1, 1, 1]. Where gradients are wanted they are computed with the value, which costs less than coming
// back for them, and wait on the tape for the factor that arrives.
#include "isomer/autograd/tape.h"
#include "isomer/kernels/loss/loss.h"
#include "isomer/laws/attention/attention.h"

namespace isomer::ops {

/// x [B, T, 1, D], weight [1, 1, V, D], bias [1, 1, 1, V] or absent; labels [B, T] below V, negative ones do not count.
/// `predicted`, if given, receives the place of the largest logit wherever there is a label.
template <class T>
struct CrossEntropyVars {
  Var<T> x, weight, bias = {};
  View<const std::int64_t, 2> labels;
  std::int64_t* predicted = nullptr;  // [B, T]
};

/// The cross-entropy of the logits x · weightᵀ + bias, or softcap · tanh(logits / softcap) if that is not 0. They are never whole
/// in memory. `result`, if given, is what the kernel counted.
template <class T>
[[nodiscard]] Var<T> linear_cross_entropy(Tape<T>& tape, const CrossEntropyVars<T>& in, double softcap = 0,
                                          LossResult* result = nullptr);

/// The mean of all elements of (x − target)².
template <class T>
[[nodiscard]] Var<T> mean_squared_error(Tape<T>& tape, Var<T> x, Var<T> target);

/// Features [B, T, H, F] of a linear attention, never negative, and the queries and keys [B, T, H or fewer, K] of softmax
/// attention over the same tokens. Keys may be those of the first S tokens alone where neither is causal.
template <class T>
struct DivergenceVars {
  Var<T> features_q, features_k;
  View<const T, 4> q, k;
};

/// How far the weights of the linear attention, W_ts = φ_t·φ_s / Σ_s φ_t·φ_s, are from A_ts = softmax_s(scale · q_t·k_s): the
/// mean over sequences, heads and queries of Σ_s A_ts log(A_ts / W_ts). This is the loss of attention transfer (Zhang et al.
/// 2024, Hedgehog), less the entropy of A. Of the options scale, clamp, direction, window and sinks count; W sees what its
/// direction shows.
template <class T>
[[nodiscard]] Var<T> attention_divergence(Tape<T>& tape, const DivergenceVars<T>& in, const AttentionOptions& options);

}  // namespace isomer::ops

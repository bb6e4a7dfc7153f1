#pragma once
// Ops along the tokens of a sequence.
#include "isomer/autograd/sequences.h"
#include "isomer/kernels/local/local.h"

namespace isomer::ops {

/// A running sum goes on in double; its state on the tape, if there is one, only carries the gradient.
template <class T>
struct AlongSum : Along<T> {
  View<double, 3> sum = {};  // [n, H, D]: what came before, overwritten with what comes after
};

/// y_t = sum + x_0 + … + x_t.
template <class T>
[[nodiscard]] Var<T> running_sum(Tape<T>& tape, Var<T> x, const AlongSum<T>& along = {});
/// The same for angles: whole turns are left out, so that they stay accurate however long the sequence is.
template <class T>
[[nodiscard]] Var<T> running_angle(Tape<T>& tape, Var<T> x, const AlongSum<T>& along = {});

/// The mean of the tokens so far: (sum + x_0 + … + x_t) / (position + t + 1).
template <class T>
[[nodiscard]] Var<T> running_mean(Tape<T>& tape, Var<T> x, const AlongSum<T>& along = {});

/// The mean of all tokens of a row: [B, 1, H, D].
template <class T>
[[nodiscard]] Var<T> mean(Tape<T>& tape, Var<T> x);

/// y_t = x_{t−1}; the first is the state [n, 1, H, D], or zero.
template <class T>
[[nodiscard]] Var<T> shift(Tape<T>& tape, Var<T> x, const Along<T>& along = {});

/// Σ_j weight_t[j] ∘ v_{t−j} over the last `width` tokens: weight [B, T or 1, H, width·D], state [n, 1, width − 1, H·D].
template <class T>
[[nodiscard]] Var<T> local_sum(Tape<T>& tape, Var<T> v, Var<T> weight, Index width, const Along<T>& along = {});

/// The same over the 3 × 3 neighbours in an image of rows × columns tokens; only the weights of its first token are used:
/// weight [B, T or 1, H, 9·D].
template <class T>
[[nodiscard]] Var<T> local_image_sum(Tape<T>& tape, Var<T> v, Var<T> weight, Index rows, Index columns);

/// Every stride-th vector between those before and after it, zeros outside, as a convolution over three reads them:
/// x [B, T, 1, C] → [B, ⌈T / stride⌉, 1, 3·C], number 3 c + j the channel c of x_{t·stride + j − 1}.
template <class T>
[[nodiscard]] Var<T> neighbours(Tape<T>& tape, Var<T> x, Index stride);

/// a, then b: [B, Ta + Tb, H, D]. b may be the same for all sequences, tokens or heads; an absent a has no tokens.
template <class T>
[[nodiscard]] Var<T> append_tokens(Tape<T>& tape, Var<T> a, Var<T> b, const Shape4& shape_of_b);

/// The first offsets[b + 1] − offsets[b] tokens of every row b of x, one row behind the other: [1, N, H, D].
template <class T>
[[nodiscard]] Var<T> pack_tokens(Tape<T>& tape, Var<T> x, std::span<const std::int64_t> offsets);
/// The way back, to rows of so many tokens: [B, tokens, H, D], zeros behind those that were packed.
template <class T>
[[nodiscard]] Var<T> unpack_tokens(Tape<T>& tape, Var<T> x, std::span<const std::int64_t> offsets, Index tokens);

/// The number of each of [B, T] tokens in its sequence, from 1: [B or 1, T, 1, 1].
template <class T>
[[nodiscard]] Var<T> position(Tape<T>& tape, Index B, Index tokens, const Sequences& sequences = {});

/// Rows of a table [1, 1, length, D] by the positions of [B, T] tokens: [B or 1, T, 1, D].
template <class T>
[[nodiscard]] Var<T> position_table(Tape<T>& tape, Var<T> table, Index B, Index tokens, const Sequences& sequences = {});

}  // namespace isomer::ops

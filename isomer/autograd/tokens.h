#pragma once
// Ops along the tokens of a sequence. States are those of streaming: they hold what came before and are overwritten; gradients
// take them for constants.
#include "isomer/autograd/tape.h"
#include "isomer/kernels/local/local.h"

namespace isomer {

/// y_t = state + x_0 + … + x_t, kept in double; state [B, H, D].
template <class T>
[[nodiscard]] Var<T> running_sum(Tape<T>& tape, Var<T> x, View<double, 3> state = {});
/// The same for angles: whole turns are left out, so that they stay accurate however long the sequence is.
template <class T>
[[nodiscard]] Var<T> running_angle(Tape<T>& tape, Var<T> x, View<double, 3> state = {});

/// The mean of the tokens so far: (sum + x_0 + … + x_t) / (before + t + 1); `sum` [B, H, D] is that of the `before` tokens.
template <class T>
[[nodiscard]] Var<T> running_mean(Tape<T>& tape, Var<T> x, View<double, 3> sum = {}, Index before = 0);

/// The mean of all tokens: [B, 1, H, D].
template <class T>
[[nodiscard]] Var<T> mean(Tape<T>& tape, Var<T> x);

/// y_t = x_{t−1}; the first is the state [B, H, D], or zero.
template <class T>
[[nodiscard]] Var<T> shift(Tape<T>& tape, Var<T> x, View<T, 3> state = {});

/// Σ_j weight_t[j] ∘ v_{t−j} over the last `width` tokens: weight [B, T or 1, H, width·D], state [B, width − 1, H·D].
template <class T>
[[nodiscard]] Var<T> local_sum(Tape<T>& tape, Var<T> v, Var<T> weight, Index width, View<T, 3> state = {});

/// The same over the 3 × 3 neighbours in an image of rows × columns tokens; only the weights of its first token are used:
/// weight [B, T or 1, H, 9·D].
template <class T>
[[nodiscard]] Var<T> local_image_sum(Tape<T>& tape, Var<T> v, Var<T> weight, Index rows, Index columns);

/// The numbers offset + 1 … offset + tokens: [1, tokens, 1, 1].
template <class T>
[[nodiscard]] Var<T> position(Tape<T>& tape, Index offset, Index tokens);

}  // namespace isomer

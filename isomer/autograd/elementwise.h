#pragma once
// Functions of single numbers and of rows as ops (kernels/elementwise).
#include "isomer/autograd/sequences.h"
#include "isomer/autograd/tape.h"
#include "isomer/kernels/elementwise/binary.h"
#include "isomer/kernels/elementwise/unary.h"

namespace isomer::ops {

/// f(x), element by element.
template <class T>
[[nodiscard]] Var<T> unary(Tape<T>& tape, Unary f, Var<T> x, UnaryOptions options = {});

/// a and b combined element by element; axes of size 1 are repeated.
template <class T>
[[nodiscard]] Var<T> binary(Tape<T>& tape, Binary f, Var<T> a, Var<T> b);
template <class T>
[[nodiscard]] Var<T> add(Tape<T>& tape, Var<T> a, Var<T> b) {
  return binary(tape, Binary::add, a, b);
}
template <class T>
[[nodiscard]] Var<T> subtract(Tape<T>& tape, Var<T> a, Var<T> b) {
  return binary(tape, Binary::subtract, a, b);
}
template <class T>
[[nodiscard]] Var<T> multiply(Tape<T>& tape, Var<T> a, Var<T> b) {
  return binary(tape, Binary::multiply, a, b);
}

/// f(gate) · x; sigmoid, silu and gelu of a gate in the shape of x take one pass.
template <class T>
[[nodiscard]] Var<T> gated(Tape<T>& tape, Unary f, Var<T> gate, Var<T> x);

/// [B, T, H, 1] as [B, T, H, times].
template <class T>
[[nodiscard]] Var<T> repeat(Tape<T>& tape, Var<T> x, Index times);

/// y[…, n] = x[…, places[n]], on one thread: for parameters. The places stay where they are until the tape is cleared.
template <class T>
[[nodiscard]] Var<T> gather(Tape<T>& tape, Var<T> x, std::span<const Index> places);

/// Over the last axis.
template <class T>
[[nodiscard]] Var<T> softmax(Tape<T>& tape, Var<T> x);
/// Softmax over the heads, then the sum of heads begin … end − 1, never above 1: [B, T, 1, D]. On one thread: for parameters.
template <class T>
[[nodiscard]] Var<T> share_of_heads(Tape<T>& tape, Var<T> x, Index begin, Index end);
/// Σ x² over the last axis: [B, T, H, 1].
template <class T>
[[nodiscard]] Var<T> square_sum(Tape<T>& tape, Var<T> x);

/// The largest number of the last axis: [B, T, H, 1]; of a head's in all tokens of the sequence if `over_tokens`. No gradient
/// goes through it.
template <class T>
[[nodiscard]] Var<T> largest(Tape<T>& tape, Var<T> x, bool over_tokens = false, const Sequences& sequences = {});
/// φ with φ(q)·φ(k) = 1 + z + z²/2, z = q·k / √D: [B, T, H, taylor_size(D)].
template <class T>
[[nodiscard]] Var<T> taylor_features(Tape<T>& tape, Var<T> x);

/// Side by side along the last axis; the parts have the same other axes.
template <class T>
[[nodiscard]] Var<T> concat(Tape<T>& tape, std::span<const Var<T>> parts);

}  // namespace isomer::ops

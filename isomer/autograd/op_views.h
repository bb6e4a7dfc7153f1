#pragma once
// How ops turn values into what kernels and laws read.
#include "isomer/autograd/fill.h"
#include "isomer/autograd/tape.h"
#include "isomer/base/error.h"

namespace isomer {

/// [B,T,H,1] or [B,T,1,H] as [B,T,H].
template <class T>
[[nodiscard]] View<T, 3> flat(View<T, 4> x) {
  const std::size_t axis = x.shape[3] == 1 ? 2 : 3;
  return {x.data, {x.shape[0], x.shape[1], x.shape[axis]}, {x.stride[0], x.stride[1], x.stride[axis]}};
}
/// [B,T,1,D] as [B,T,D].
template <class T>
[[nodiscard]] View<T, 3> only_head(View<T, 4> x) {
  return {x.data, {x.shape[0], x.shape[1], x.shape[3]}, {x.stride[0], x.stride[1], x.stride[3]}};
}
/// [1,1,H,K] as [H,K].
template <class T>
[[nodiscard]] View<T, 2> matrix(View<T, 4> x) {
  return {x.data, {x.shape[2], x.shape[3]}, {x.stride[2], x.stride[3]}};
}

/// Rows [B,T,G,D] that sequences or tokens may share; heads too if their number is given.
template <class T>
[[nodiscard]] Spread<T> rows_for(Var<T> x, Index B, Index L, Index heads = 0) {
  if (!x.present()) return {x, {}};
  return {x, {B, L, heads != 0 ? heads : x.dim(2), x.dim(3)}};
}
/// n numbers a token, in the third axis or in the fourth; or one number for all of them.
template <class T>
[[nodiscard]] Spread<T> gates_for(const char* op, Var<T> x, Index B, Index L, Index n) {
  if (!x.present()) return {x, {}};
  const bool third = x.dim(3) == 1;
  require(third || x.dim(2) == 1, op, "expected a gate [", B, ", ", L, ", ", n, ", 1] or [", B, ", ", L, ", 1, ", n, "], got [",
          x.dim(0), ", ", x.dim(1), ", ", x.dim(2), ", ", x.dim(3), "]");
  return {x, {B, L, third ? n : 1, third ? 1 : n}};
}

/// A dense copy of a state, which the final state is about to overwrite, in memory from take(count).
template <class T, int R, class Take>
[[nodiscard]] View<const T, R> copied(const View<T, R>& state, Take take) {
  View<T, R> copy{take(state.size()), state.shape, {}};
  Index size = 1;
  for (int axis = R - 1; axis >= 0; --axis) {
    copy.stride[std::size_t(axis)] = size;
    size *= state.shape[std::size_t(axis)];
  }
  for (Index i = 0; i < size; ++i) {
    Index rest = i, offset = 0;
    for (int axis = R - 1; axis >= 0; --axis) {
      offset += rest % state.shape[std::size_t(axis)] * state.stride[std::size_t(axis)];
      rest /= state.shape[std::size_t(axis)];
    }
    copy.data[i] = state.data[offset];
  }
  return copy;
}
/// The initial state for the backward pass, or nothing if there will be none.
template <class T, int R>
[[nodiscard]] View<const T, R> kept(Tape<T>& tape, const View<T, R>& state, bool wanted) {
  if (!state.present() || !wanted) return {};
  return copied(state, [&](Index size) { return tape.template keep<T>(size); });
}

}  // namespace isomer

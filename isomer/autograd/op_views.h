#pragma once
// How ops turn values into what kernels and laws read.
#include "isomer/autograd/fill.h"
#include "isomer/autograd/tape.h"
#include "isomer/base/error.h"

namespace isomer {

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

/// A dense copy of a state, which the final state is about to overwrite, in memory from take(count).
template <class T, int R, class Take>
[[nodiscard]] View<const T, R> copied(const View<const T, R>& state, Take take) {
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
  return copied(View<const T, R>(state), [&](Index size) { return tape.template keep<T>(size); });
}

}  // namespace isomer

#pragma once
// What the read-out of a model shares with its front.
#include <algorithm>
#include <span>

#include "isomer/autograd/tape.h"

namespace isomer {

/// Numbers of an input, as values of the tape.
template <class T>
Var<T> values(Tape<T>& tape, std::span<const float> numbers, const Shape4& shape) {
  const Var<T> y = tape.make(shape, {});
  std::ranges::transform(numbers, y.value.data, [](float x) { return T(x); });
  return y;
}

/// One token of every row, without a copy.
template <class T>
Var<T> token_at(Var<T> x, Index t) {
  return Tape<T>::part(x, slice(x.value, 1, t, 1));
}
template <class T>
Var<T> last_token(Var<T> x) {
  return token_at(x, x.dim(1) - 1);
}

}  // namespace isomer

#pragma once
// Part of a model whose values are not kept for the backward pass but computed again there: memory for time.
//
//   const Var<float> y = recompute<float>(tape, {x}, [&block](Tape<float>& t, auto in) { return block(t, in[0]); });
//
// On a tape that does not record it only gives back the memory of what was computed on the way.
// f(tape, inputs) must compute the same both times (give dropout its stream by value) and hold plain values or pointers that
// live until the backward pass; it may use parameters, and may recompute parts of its own. Streaming states do not belong here.
#include <algorithm>

#include "isomer/autograd/tape.h"
#include "isomer/kernels/elementwise/sum.h"

namespace isomer {

template <class T, class F>
[[nodiscard]] Var<T> recompute(Tape<T>& tape, std::initializer_list<Var<T>> inputs, F f) {
  Var<T>* kept = tape.template keep<Var<T>>(Index(inputs.size()));
  std::copy(inputs.begin(), inputs.end(), kept);
  const std::span<const Var<T>> in(kept, inputs.size());
  typename Tape<T>::Aside aside(tape);
  const Var<T> inside = tape.without_recording([&] { return f(tape, in); });
  aside.leave();
  const Var<T> y = tape.make(inside.shape(), {});
  copy<T>(inside.value, y.value, tape.context());
  // It may depend on parameters that f knows.
  y.slot->wanted = tape.recording();
  tape.record({y}, [=](Tape<T>& back) {
    const typename Tape<T>::Aside again(back);
    const auto mark = back.mark();
    const Var<T> value = f(back, in);
    if (const auto into = back.target(value); into.present())
      sum_to<T>({.x = back.arrived(y)}, into.view, into.mode, back.context());
    back.backward_to(mark);
  });
  return y;
}

}  // namespace isomer

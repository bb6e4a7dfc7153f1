#pragma once
// Part of a model whose values are not kept for the backward pass but computed again there: memory for time.
//
//   const Var<float> y = ops::recompute<float>(tape, {x}, [&block](Tape<float>& t, auto in) { return block(t, in[0]); });
//
// On a tape that does not record it only gives back the memory of what was computed on the way.
// f(tape, inputs) must compute the same both times (give dropout its stream by value) and hold plain values or pointers that
// live until the backward pass; it may use parameters, and may recompute parts of its own. Streaming states do not belong here.
#include <algorithm>

#include "isomer/autograd/tape.h"
#include "isomer/kernels/elementwise/sum.h"

namespace isomer::ops {

/// Several values: f(tape, inputs, outputs) sets each of `outputs`.
template <class T, class F>
void recompute(Tape<T>& tape, std::span<const Var<T>> inputs, std::span<Var<T>> outputs, F f) {
  const std::span<Var<T>> in(tape.template keep<Var<T>>(Index(inputs.size())), inputs.size());
  const std::span<Var<T>> kept(tape.template keep<Var<T>>(Index(outputs.size())), outputs.size());
  std::ranges::copy(inputs, in.begin());
  typename Tape<T>::Scope scope(tape);
  tape.without_recording([&] { f(tape, std::span<const Var<T>>(in), outputs); });
  scope.leave();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    kept[i] = tape.make(outputs[i].shape(), {});
    copy<T>(outputs[i].value, kept[i].value, tape.context());
    // It may depend on parameters that f knows.
    kept[i].slot->wanted = tape.recording();
  }
  std::ranges::copy(kept, outputs.begin());
  tape.record(kept, [=](Tape<T>& back) {
    const typename Tape<T>::Scope again(back);
    const auto mark = back.mark();
    const std::span<Var<T>> values(back.template keep<Var<T>>(Index(kept.size())), kept.size());
    f(back, std::span<const Var<T>>(in), values);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (!kept[i].slot->written) continue;
      if (const auto into = back.target(values[i]); into.present())
        sum_to<T>({.x = back.arrived(kept[i])}, into.view, into.mode, back.context());
    }
    back.backward_to(mark);
  });
}

template <class T, class F>
[[nodiscard]] Var<T> recompute(Tape<T>& tape, std::initializer_list<Var<T>> inputs, F f) {
  Var<T> y;
  recompute<T>(tape, std::span<const Var<T>>(inputs.begin(), inputs.size()), std::span<Var<T>>(&y, 1),
               [=](Tape<T>& on, std::span<const Var<T>> in, std::span<Var<T>> out) { out[0] = f(on, in); });
  return y;
}

}  // namespace isomer::ops

#include "isomer/autograd/conv.h"

#include "isomer/autograd/fill.h"
#include "isomer/autograd/op_views.h"
#include "isomer/autograd/views.h"

namespace isomer::ops {

template <class T>
Var<T> conv(Tape<T>& tape, const ConvVars<T>& in, const Along<T>& along) {
  const Var<T> x = heads(in.x, 1), weight = in.weight, bias = in.bias;
  const Var<T> before = along.state != nullptr ? *along.state : Var<T>();
  const Var<T> y = tape.make(x.shape(), {x, weight, bias, before});
  const Var<T> after = before.present() ? final_state(tape, before, {x}) : Var<T>();
  Workspace& scratch = tape.context().workspace();
  const Workspace::Scope scope(scratch);
  // The kernel wants another memory for the final state; the backward pass wants the initial one.
  const auto take = [&](Index size) { return y.wanted() ? tape.template keep<T>(size) : scratch.take<T>(size); };
  const bool in_place = before.present() && before.value.data == after.value.data;
  const View<const T, 3> old = state_view(View<const T, 4>(before.value));
  const View<const T, 3> initial = in_place ? copied(old, take) : old;
  const auto values = [=, silu = in.silu] {
    return ConvInputs<T>{.x = only_head(View<const T, 4>(x.value)),
                         .weight = matrix(View<const T, 4>(weight.value)),
                         .bias = matrix(View<const T, 4>(bias.value)),
                         .state = initial,
                         .silu = silu};
  };
  const auto offsets = along.sequences.offsets;
  conv<T>(values(), offsets, {.y = only_head(y.value), .state = state_view(after.value)}, tape.context());
  if (along.state != nullptr) *along.state = after;
  tape.record({y, after}, [=](Tape<T>& back) {
    GradientWriter<T> into(back);
    const ConvUpstream<T> up{.dy = only_head(back.arrived(y)),
                             .dstate = after.wanted() ? state_view(back.arrived(after)) : View<const T, 3>{}};
    const ConvGradients<T> grad{.dx = only_head(into(x)),
                                .dweight = matrix(into(weight)),
                                .dbias = matrix(into(bias)),
                                .dstate = state_view(into(before))};
    conv_vjp<T>(values(), offsets, up, grad, back.context());
    into.finish();
  });
  return heads(y, in.x.dim(2));
}

template Var<float> conv(Tape<float>&, const ConvVars<float>&, const Along<float>&);
template Var<double> conv(Tape<double>&, const ConvVars<double>&, const Along<double>&);

}  // namespace isomer::ops

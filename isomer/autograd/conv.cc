#include "isomer/autograd/conv.h"

#include "isomer/autograd/fill.h"
#include "isomer/autograd/op_views.h"
#include "isomer/autograd/views.h"

namespace isomer {

template <class T>
Var<T> conv(Tape<T>& tape, Var<T> in, Var<T> weight, Var<T> bias, View<T, 3> state, bool silu) {
  const Var<T> x = heads(in, 1), y = tape.make(x.shape(), {x, weight, bias});
  Workspace& scratch = tape.context().workspace();
  const Workspace::Scope scope(scratch);
  // The kernel wants another memory for the final state; the backward pass wants the initial one.
  const auto take = [&](Index size) { return y.wanted() ? tape.template keep<T>(size) : scratch.take<T>(size); };
  const View<const T, 3> initial = state.present() ? copied(state, take) : View<const T, 3>{};
  const auto values = [=](View<const T, 3> before) {
    return ConvInputs<T>{.x = only_head(View<const T, 4>(x.value)),
                         .weight = matrix(View<const T, 4>(weight.value)),
                         .bias = matrix(View<const T, 4>(bias.value)),
                         .state = before,
                         .silu = silu};
  };
  conv<T>(values(initial), {}, {.y = only_head(y.value), .state = state}, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    Filling<T> fill(back);
    const ConvGradients<T> grad{.dx = only_head(fill(x)), .dweight = matrix(fill(weight)), .dbias = matrix(fill(bias))};
    conv_vjp<T>(values(initial), {}, {.dy = only_head(back.arrived(y))}, grad, back.context());
    fill.finish();
  });
  return heads(y, in.dim(2));
}

template Var<float> conv(Tape<float>&, Var<float>, Var<float>, Var<float>, View<float, 3>, bool);
template Var<double> conv(Tape<double>&, Var<double>, Var<double>, Var<double>, View<double, 3>, bool);

}  // namespace isomer

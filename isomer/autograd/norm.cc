#include "isomer/autograd/norm.h"

#include "isomer/autograd/fill.h"
#include "isomer/autograd/op_views.h"

namespace isomer::ops {

template <class T>
Var<T> norm(Tape<T>& tape, Var<T> x, NormOptions options, Var<T> weight, Var<T> bias) {
  const Var<T> y = tape.make(x.shape(), {x, weight, bias});
  const NormParameters<T> parameters{matrix(View<const T, 4>(weight.value)), matrix(View<const T, 4>(bias.value))};
  norm<T>(x.value, parameters, options, y.value, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    GradientWriter<T> write(back);
    const auto dx = back.target(x);
    const NormGradients<T> grad{
        .dx = dx.view, .dweight = matrix(write(weight)), .dbias = matrix(write(bias)), .accumulate_x = dx.mode};
    norm_vjp<T>(x.value, back.arrived(y), parameters, options, grad, back.context());
    write.finish();
  });
  return y;
}

template Var<float> norm(Tape<float>&, Var<float>, NormOptions, Var<float>, Var<float>);
template Var<double> norm(Tape<double>&, Var<double>, NormOptions, Var<double>, Var<double>);

}  // namespace isomer::ops

#include "isomer/autograd/add_product.h"

#include "isomer/kernels/elementwise/add_product.h"
#include "isomer/kernels/elementwise/sum.h"

namespace isomer {

template <class T>
Var<T> add_product(Tape<T>& tape, Var<T> x, Var<T> a, Var<T> b) {
  const Var<T> y = tape.make(broadcast(broadcast(x.shape(), a.shape()), b.shape()), {x, a, b});
  add_product<T>(x.value, a.value, b.value, y.value, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    const View<const T, 4> dy = back.arrived(y);
    // One after the other: two of them may be the same value.
    const auto put = [&](Var<T> input, View<const T, 4> weight) {
      if (const auto into = back.target(input); into.present())
        sum_to<T>({.x = dy, .weight = weight}, into.view, into.mode, back.context());
    };
    put(x, {});
    put(a, b.value);
    put(b, a.value);
  });
  return y;
}

template Var<float> add_product(Tape<float>&, Var<float>, Var<float>, Var<float>);
template Var<double> add_product(Tape<double>&, Var<double>, Var<double>, Var<double>);

}  // namespace isomer

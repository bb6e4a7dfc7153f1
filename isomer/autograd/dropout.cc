#include "isomer/autograd/dropout.h"

namespace isomer::ops {

template <class T>
Var<T> dropout(Tape<T>& tape, Var<T> x, const DropoutOptions& options) {
  if (options.rate == 0) return x;
  const Var<T> y = tape.make(x.shape(), {x});
  dropout<T>(options, x.value, y.value, Accumulate::set, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    const auto dx = back.target(x);
    dropout<T>(options, back.arrived(y), dx.view, dx.mode, back.context());
  });
  return y;
}

template Var<float> dropout(Tape<float>&, Var<float>, const DropoutOptions&);
template Var<double> dropout(Tape<double>&, Var<double>, const DropoutOptions&);

}  // namespace isomer::ops

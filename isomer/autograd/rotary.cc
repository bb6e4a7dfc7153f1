#include "isomer/autograd/rotary.h"

#include "isomer/autograd/fill.h"

namespace isomer {

template <class T>
Var<T> rotary(Tape<T>& tape, Var<T> x, RotaryPositions positions) {
  const Var<T> y = tape.make(x.shape(), {x});
  rotary<T>(x.value, positions, y.value, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    Filling<T> fill(back);
    rotary_vjp<T>(back.arrived(y), positions, fill(x), back.context());
    fill.finish();
  });
  return y;
}

template <class T>
Var<T> rotary(Tape<T>& tape, Var<T> x, Var<T> angle) {
  const Var<T> y = tape.make(x.shape(), {x, angle});
  const Spread<T> angles{angle, {x.dim(0), x.dim(1), angle.dim(2), angle.dim(3)}};
  rotary<T>(x.value, angles.value(), y.value, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    Filling<T> fill(back);
    const RotaryGradients<T> grad{.dx = fill(x), .dangle = fill(angles)};
    rotary_vjp<T>(x.value, back.arrived(y), angles.value(), grad, back.context());
    fill.finish();
  });
  return y;
}

template Var<float> rotary(Tape<float>&, Var<float>, RotaryPositions);
template Var<double> rotary(Tape<double>&, Var<double>, RotaryPositions);
template Var<float> rotary(Tape<float>&, Var<float>, Var<float>);
template Var<double> rotary(Tape<double>&, Var<double>, Var<double>);

}  // namespace isomer

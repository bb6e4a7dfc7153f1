#include "isomer/autograd/rotary.h"

#include "isomer/autograd/fill.h"

namespace isomer::ops {

template <class T>
Var<T> rotary(Tape<T>& tape, Var<T> x, const RotaryPositions& angles, const Sequences& sequences) {
  const Var<T> y = tape.make(x.shape(), {x});
  const auto each = [=, angles = angles](auto f) {
    each_part("rotary", sequences, x.dim(0), x.dim(1), Placed::yes, [&](const SequencePart& part) {
      f(part, RotaryPositions{.base = angles.base, .scaling = angles.scaling, .offset = part.position});
    });
  };
  each([&](const SequencePart& part, RotaryPositions positions) {
    rotary<T>(part.tokens(View<const T, 4>(x.value)), positions, part.tokens(y.value), tape.context());
  });
  tape.record({y}, [=](Tape<T>& back) {
    GradientWriter<T> write(back);
    const View<const T, 4> dy = back.arrived(y);
    const View<T, 4> dx = write(x);
    each([&](const SequencePart& part, RotaryPositions positions) {
      rotary_vjp<T>(part.tokens(dy), positions, part.tokens(dx), back.context());
    });
    write.finish();
  });
  return y;
}

template <class T>
Var<T> rotary(Tape<T>& tape, Var<T> x, Var<T> angle) {
  const Var<T> y = tape.make(x.shape(), {x, angle});
  const Broadcast<T> angles{angle, {x.dim(0), x.dim(1), angle.dim(2), angle.dim(3)}};
  rotary<T>(x.value, angles.value(), y.value, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    GradientWriter<T> write(back);
    const RotaryGradients<T> grad{.dx = write(x), .dangle = write(angles)};
    rotary_vjp<T>(x.value, back.arrived(y), angles.value(), grad, back.context());
    write.finish();
  });
  return y;
}

template Var<float> rotary(Tape<float>&, Var<float>, const RotaryPositions&, const Sequences&);
template Var<double> rotary(Tape<double>&, Var<double>, const RotaryPositions&, const Sequences&);
template Var<float> rotary(Tape<float>&, Var<float>, Var<float>);
template Var<double> rotary(Tape<double>&, Var<double>, Var<double>);

}  // namespace isomer::ops

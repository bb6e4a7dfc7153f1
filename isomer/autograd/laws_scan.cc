#include "isomer/autograd/laws.h"
#include "isomer/autograd/op_views.h"

namespace isomer {

namespace {
template <class T>
struct Inputs {
  Spread<T> log_decay, x, angle, x_imag;

  [[nodiscard]] ScanInputs<T> values(const ScanStates<const T>& initial) const {
    return {.log_decay = flat(log_decay.value()),
            .x = flat(x.value()),
            .angle = flat(angle.value()),
            .x_imag = flat(x_imag.value()),
            .initial = initial};
  }
};

/// h or h_imag in [B,T,1,N] or [B,T,1,2N].
template <class T>
View<T, 3> half(View<T, 4> y, Index which, Index N) {
  return only_head(slice(y, 3, which * N, N));
}
}  // namespace

template <class T>
Var<T> scan(Tape<T>& tape, const ScanVars<T>& in, const ScanOptions& options, const ScanStates<T>& states, Form form) {
  const Index B = in.x.dim(0), L = in.x.dim(1), N = in.x.dim(2) * in.x.dim(3);
  const bool complex = in.angle.present() || in.x_imag.present() || states.imag.present();
  const Inputs<T> x{.log_decay = gates_for("scan", in.log_decay, B, L, N),
                    .x = gates_for("scan", in.x, B, L, N),
                    .angle = gates_for("scan", in.angle, B, L, N),
                    .x_imag = gates_for("scan", in.x_imag, B, L, N)};
  const Var<T> y = tape.make({B, L, 1, complex ? 2 * N : N}, {in.log_decay, in.x, in.angle, in.x_imag});
  LawTape<T>* left = y.wanted() ? tape.law_tape() : nullptr;
  const ScanStates<const T> initial{kept(tape, states.state, y.wanted()), kept(tape, states.imag, y.wanted())};
  tape.timed(Profile::Kind::law, [&] {
    scan<T>(x.values({states.state, states.imag}), options, form,
            {.h = half(y.value, 0, N),
             .h_imag = complex ? half(y.value, 1, N) : View<T, 3>{},
             .final_states = states,
             .tape = left ? &left->chunk : nullptr},
            tape.context());
  });
  tape.record({y}, [=](Tape<T>& back) {
    Filling<T> fill(back);
    const ScanGradients<T> grad{
        .log_decay = flat(fill(x.log_decay)), .x = flat(fill(x.x)), .angle = flat(fill(x.angle)), .x_imag = flat(fill(x.x_imag))};
    const View<const T, 4> dy = back.arrived(y);
    back.timed(Profile::Kind::law, [&] {
      scan_vjp<T>(x.values(initial), options, form,
                  {.h = half(dy, 0, N), .h_imag = complex ? half(dy, 1, N) : View<const T, 3>{}, .tape = &left->chunk}, grad,
                  back.context());
    });
    fill.finish();
  });
  return y;
}

namespace {
template <class T>
struct S6Inputs {
  Spread<T> x, step, a, b, c, d;

  [[nodiscard]] ScanS6Inputs<T> values(View<const T, 3> initial) const {
    return {.x = flat(x.value()),
            .step = flat(step.value()),
            .a = matrix(a.value()),
            .b = flat(b.value()),
            .c = flat(c.value()),
            .d = vector(d.value()),
            .initial_state = initial};
  }
  /// [1,1,1,C] as [C].
  template <class U>
  [[nodiscard]] static View<U, 1> vector(View<U, 4> p) {
    const View<U, 3> all = flat(p);
    return {all.data, {all.shape[2]}, {all.stride[2]}};
  }
};
}  // namespace

template <class T>
Var<T> scan_s6(Tape<T>& tape, const ScanS6Vars<T>& in, const ScanOptions& options, View<T, 3> state, Form form) {
  const Index B = in.x.dim(0), L = in.x.dim(1), C = in.x.dim(2) * in.x.dim(3), N = in.a.dim(3);
  const S6Inputs<T> x{.x = gates_for("scan_s6", in.x, B, L, C),
                      .step = gates_for("scan_s6", in.step, B, L, C),
                      .a = rows_for(in.a, 1, 1, C),
                      .b = gates_for("scan_s6", in.b, B, L, N),
                      .c = gates_for("scan_s6", in.c, B, L, N),
                      .d = gates_for("scan_s6", in.d, 1, 1, C)};
  const Var<T> o = tape.make({B, L, 1, C}, {in.x, in.step, in.a, in.b, in.c, in.d});
  LawTape<T>* left = o.wanted() ? tape.law_tape() : nullptr;
  const View<const T, 3> initial = kept(tape, state, o.wanted());
  tape.timed(Profile::Kind::law, [&] {
    scan_s6<T>(x.values(state), options, form,
               {.o = half(o.value, 0, C), .final_state = state, .tape = left ? &left->chunk : nullptr}, tape.context());
  });
  tape.record({o}, [=](Tape<T>& back) {
    Filling<T> fill(back);
    const ScanS6Gradients<T> grad{.x = flat(fill(x.x)),
                                  .step = flat(fill(x.step)),
                                  .a = matrix(fill(x.a)),
                                  .b = flat(fill(x.b)),
                                  .c = flat(fill(x.c)),
                                  .d = S6Inputs<T>::vector(fill(x.d))};
    back.timed(Profile::Kind::law, [&] {
      scan_s6_vjp<T>(x.values(initial), options, form, {.o = half(back.arrived(o), 0, C), .tape = &left->chunk}, grad,
                     back.context());
    });
    fill.finish();
  });
  return o;
}

template Var<float> scan(Tape<float>&, const ScanVars<float>&, const ScanOptions&, const ScanStates<float>&, Form);
template Var<double> scan(Tape<double>&, const ScanVars<double>&, const ScanOptions&, const ScanStates<double>&, Form);
template Var<float> scan_s6(Tape<float>&, const ScanS6Vars<float>&, const ScanOptions&, View<float, 3>, Form);
template Var<double> scan_s6(Tape<double>&, const ScanS6Vars<double>&, const ScanOptions&, View<double, 3>, Form);

}  // namespace isomer

#include <algorithm>

#include "isomer/autograd/laws.h"
#include "isomer/autograd/op_views.h"

namespace isomer {

namespace {
template <class T>
struct Inputs {
  Spread<T> q, k, v, beta, log_decay, key_log_decay, a, b;

  [[nodiscard]] DeltaInputs<T> values(View<const T, 4> initial) const {
    return {.q = q.value(),
            .k = k.value(),
            .v = v.value(),
            .beta = flat(beta.value()),
            .log_decay = flat(log_decay.value()),
            .key_log_decay = key_log_decay.value(),
            .a = a.value(),
            .b = b.value(),
            .initial_state = initial};
  }
};
}  // namespace

template <class T>
Var<T> delta(Tape<T>& tape, const DeltaVars<T>& in, const DeltaOptions& options, View<T, 4> state, Form form) {
  const Index B = in.v.dim(0), L = in.v.dim(1), H = std::max({in.q.dim(2), in.k.dim(2), in.v.dim(2)});
  const Inputs<T> x{.q = rows_for(in.q, B, L),
                    .k = rows_for(in.k, B, L),
                    .v = rows_for(in.v, B, L),
                    .beta = gates_for("delta", in.beta, B, L, H),
                    .log_decay = gates_for("delta", in.log_decay, B, L, H),
                    .key_log_decay = rows_for(in.key_log_decay, B, L, H),
                    .a = rows_for(in.a, B, L, H),
                    .b = rows_for(in.b, B, L, H)};
  const Var<T> o = tape.make({B, L, H, in.v.dim(3)}, {in.q, in.k, in.v, in.beta, in.log_decay, in.key_log_decay, in.a, in.b});
  LawTape<T>* left = o.wanted() ? tape.law_tape() : nullptr;
  const View<const T, 4> initial = kept(tape, state, o.wanted());
  tape.timed(Profile::Kind::law, [&] {
    delta<T>(x.values(state), options, form, {.o = o.value, .final_state = state, .tape = left ? &left->chunk : nullptr},
             tape.context());
  });
  tape.record({o}, [=](Tape<T>& back) {
    Filling<T> fill(back);
    const DeltaGradients<T> grad{.q = fill(x.q),
                                 .k = fill(x.k),
                                 .v = fill(x.v),
                                 .beta = flat(fill(x.beta)),
                                 .log_decay = flat(fill(x.log_decay)),
                                 .key_log_decay = fill(x.key_log_decay),
                                 .a = fill(x.a),
                                 .b = fill(x.b)};
    back.timed(Profile::Kind::law, [&] {
      delta_vjp<T>(x.values(initial), options, form, {.o = back.arrived(o), .tape = &left->chunk}, grad, back.context());
    });
    fill.finish();
  });
  return o;
}

template Var<float> delta(Tape<float>&, const DeltaVars<float>&, const DeltaOptions&, View<float, 4>, Form);
template Var<double> delta(Tape<double>&, const DeltaVars<double>&, const DeltaOptions&, View<double, 4>, Form);

}  // namespace isomer

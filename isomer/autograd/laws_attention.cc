#include <algorithm>

#include "isomer/autograd/laws.h"
#include "isomer/autograd/op_views.h"
#include "isomer/base/error.h"

namespace isomer {

namespace {
template <class T>
struct Inputs {
  Spread<T> q, k, v, log_forget, gate;

  [[nodiscard]] AttentionInputs<T> values() const {
    return {.q = q.value(), .k = k.value(), .v = v.value(), .log_forget = flat(log_forget.value()), .gate = flat(gate.value())};
  }
};

template <class T>
Inputs<T> inputs_of(const AttentionVars<T>& in) {
  const Index B = in.v.dim(0), L = in.q.dim(1), S = in.v.dim(1), H = std::max({in.q.dim(2), in.k.dim(2), in.v.dim(2)});
  return {.q = rows_for(in.q, B, L),
          .k = rows_for(in.k, B, S),
          .v = rows_for(in.v, B, S),
          .log_forget = gates_for("attention", in.log_forget, B, S, H),
          .gate = gates_for("attention", in.gate, B, L, H)};
}

template <class T>
Var<T> make_output(Tape<T>& tape, const AttentionVars<T>& in) {
  const Index H = std::max({in.q.dim(2), in.k.dim(2), in.v.dim(2)});
  return tape.make({in.v.dim(0), in.q.dim(1), H, in.v.dim(3)}, {in.q, in.k, in.v, in.log_forget, in.gate});
}
}  // namespace

template <class T>
Var<T> attention(Tape<T>& tape, const AttentionVars<T>& in, const AttentionOptions& options, Form form) {
  const Inputs<T> x = inputs_of(in);
  const Var<T> o = make_output(tape, in);
  LawTape<T>* left = o.wanted() ? tape.law_tape() : nullptr;
  tape.timed(Profile::Kind::law, [&] {
    attention<T>(x.values(), options, form, {.o = o.value, .tape = left ? &left->attention : nullptr}, tape.context());
  });
  tape.record({o}, [=](Tape<T>& back) {
    Filling<T> fill(back);
    const AttentionGradients<T> grad{
        .q = fill(x.q), .k = fill(x.k), .v = fill(x.v), .log_forget = flat(fill(x.log_forget)), .gate = flat(fill(x.gate))};
    back.timed(Profile::Kind::law, [&] {
      attention_vjp<T>(x.values(), options, form, {.o = o.value, .tape = &left->attention}, back.arrived(o), grad,
                       back.context());
    });
    fill.finish();
  });
  return o;
}

template <class T>
Var<T> attention(Tape<T>& tape, const AttentionVars<T>& in, const AttentionOptions& options, AttentionState<T>& state) {
  const AttentionInputs<T> all = inputs_of(in).values();
  const Var<T> o = make_output(tape, in);
  require(!o.wanted(), "attention", "expected inputs without gradients beside a state, got some that want one");
  tape.timed(Profile::Kind::law, [&] { attention_stream<T>(all, options, state, {.o = o.value}, tape.context()); });
  return o;
}

template Var<float> attention(Tape<float>&, const AttentionVars<float>&, const AttentionOptions&, Form);
template Var<double> attention(Tape<double>&, const AttentionVars<double>&, const AttentionOptions&, Form);
template Var<float> attention(Tape<float>&, const AttentionVars<float>&, const AttentionOptions&, AttentionState<float>&);
template Var<double> attention(Tape<double>&, const AttentionVars<double>&, const AttentionOptions&, AttentionState<double>&);

}  // namespace isomer

// scalar_decay and channel_decay.
#include <algorithm>

#include "isomer/autograd/laws.h"
#include "isomer/autograd/op_views.h"

namespace isomer {

namespace {
template <class T>
struct ScalarInputs {
  Spread<T> q, k, v, log_decay, log_input;

  [[nodiscard]] ScalarDecayInputs<T> values(const ScalarDecayStates<const T>& initial) const {
    return {.q = q.value(),
            .k = k.value(),
            .v = v.value(),
            .log_decay = flat(log_decay.value()),
            .log_input = flat(log_input.value()),
            .initial = initial};
  }
};

template <class T>
ScalarDecayStates<const T> kept_states(Tape<T>& tape, const ScalarDecayStates<T>& s, bool wanted) {
  return {.state = kept(tape, s.state, wanted),
          .norm = kept(tape, s.norm, wanted),
          .max = kept(tape, s.max, wanted),
          .value_sum = kept(tape, s.value_sum, wanted),
          .count = kept(tape, s.count, wanted)};
}
}  // namespace

template <class T>
Var<T> scalar_decay(Tape<T>& tape, const ScalarDecayVars<T>& in, const ScalarDecayOptions& options,
                    const ScalarDecayStates<T>& states, Form form) {
  const Index B = in.v.dim(0), L = in.v.dim(1), H = std::max({in.q.dim(2), in.k.dim(2), in.v.dim(2)});
  const ScalarInputs<T> x{.q = rows_for(in.q, B, L),
                          .k = rows_for(in.k, B, L),
                          .v = rows_for(in.v, B, L),
                          .log_decay = gates_for("scalar_decay", in.log_decay, B, L, H),
                          .log_input = gates_for("scalar_decay", in.log_input, B, L, H)};
  const Var<T> o = tape.make({B, L, H, in.v.dim(3)}, {in.q, in.k, in.v, in.log_decay, in.log_input});
  LawTape<T>* left = o.wanted() ? tape.law_tape() : nullptr;
  const ScalarDecayStates<const T> initial = kept_states(tape, states, o.wanted());
  tape.timed(Profile::Kind::law, [&] {
    scalar_decay<T>(x.values({states.state, states.norm, states.max, states.value_sum, states.count}), options, form,
                    {.o = o.value, .final_states = states, .tape = left ? &left->chunk : nullptr}, tape.context());
  });
  tape.record({o}, [=](Tape<T>& back) {
    Filling<T> fill(back);
    const ScalarDecayGradients<T> grad{.q = fill(x.q),
                                       .k = fill(x.k),
                                       .v = fill(x.v),
                                       .log_decay = flat(fill(x.log_decay)),
                                       .log_input = flat(fill(x.log_input))};
    back.timed(Profile::Kind::law, [&] {
      scalar_decay_vjp<T>(x.values(initial), options, form, {.o = back.arrived(o), .tape = &left->chunk}, grad, back.context());
    });
    fill.finish();
  });
  return o;
}

namespace {
template <class T>
struct ChannelInputs {
  Spread<T> q, k, v, log_decay, bonus;

  [[nodiscard]] ChannelDecayInputs<T> values(View<const T, 4> initial) const {
    return {.q = q.value(),
            .k = k.value(),
            .v = v.value(),
            .log_decay = log_decay.value(),
            .bonus = matrix(bonus.value()),
            .initial_state = initial};
  }
};
}  // namespace

template <class T>
Var<T> channel_decay(Tape<T>& tape, const ChannelDecayVars<T>& in, const ChannelDecayOptions& options, View<T, 4> state,
                     Form form) {
  const Index B = in.v.dim(0), L = in.v.dim(1), H = std::max({in.q.dim(2), in.k.dim(2), in.v.dim(2)});
  const ChannelInputs<T> x{.q = rows_for(in.q, B, L),
                           .k = rows_for(in.k, B, L),
                           .v = rows_for(in.v, B, L),
                           .log_decay = rows_for(in.log_decay, B, L, H),
                           .bonus = rows_for(in.bonus, 1, 1, H)};
  const Var<T> o = tape.make({B, L, H, in.v.dim(3)}, {in.q, in.k, in.v, in.log_decay, in.bonus});
  LawTape<T>* left = o.wanted() ? tape.law_tape() : nullptr;
  const View<const T, 4> initial = kept(tape, state, o.wanted());
  tape.timed(Profile::Kind::law, [&] {
    channel_decay<T>(x.values(state), options, form, {.o = o.value, .final_state = state, .tape = left ? &left->chunk : nullptr},
                     tape.context());
  });
  tape.record({o}, [=](Tape<T>& back) {
    Filling<T> fill(back);
    const ChannelDecayGradients<T> grad{
        .q = fill(x.q), .k = fill(x.k), .v = fill(x.v), .log_decay = fill(x.log_decay), .bonus = matrix(fill(x.bonus))};
    back.timed(Profile::Kind::law, [&] {
      channel_decay_vjp<T>(x.values(initial), options, form, {.o = back.arrived(o), .tape = &left->chunk}, grad, back.context());
    });
    fill.finish();
  });
  return o;
}

template Var<float> scalar_decay(Tape<float>&, const ScalarDecayVars<float>&, const ScalarDecayOptions&,
                                 const ScalarDecayStates<float>&, Form);
template Var<double> scalar_decay(Tape<double>&, const ScalarDecayVars<double>&, const ScalarDecayOptions&,
                                  const ScalarDecayStates<double>&, Form);
template Var<float> channel_decay(Tape<float>&, const ChannelDecayVars<float>&, const ChannelDecayOptions&, View<float, 4>, Form);
template Var<double> channel_decay(Tape<double>&, const ChannelDecayVars<double>&, const ChannelDecayOptions&, View<double, 4>,
                                   Form);

}  // namespace isomer

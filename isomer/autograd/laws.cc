#include "isomer/autograd/laws.h"

#include <new>

namespace isomer::ops {

namespace {
/// A bound law that lives as long as the tape's values.
template <class Bound, class Options, class T>
const Bound& on_tape(Tape<T>& tape, const Options& options) {
  static_assert(std::is_trivially_destructible_v<Bound>);
  return *new (tape.template keep<Bound>(1)) Bound(options);
}
}  // namespace

template <class T>
Var<T> attention(Tape<T>& tape, const AttentionVars<T>& in, const AttentionOptions& options, Form form) {
  return law<T>(tape, on_tape<BoundAttention>(tape, options), {in.q, in.k, in.v, in.log_forget, in.gate, in.bias},
                {.form = form});
}

template <class T>
Var<T> attention(Tape<T>& tape, const AttentionVars<T>& in, const AttentionOptions& options, AttentionStream<T>& state) {
  return law<T>(tape, on_tape<BoundAttention>(tape, options), {in.q, in.k, in.v, in.log_forget, in.gate, in.bias},
                {.stream = &state});
}

template <class T>
Var<T> scalar_decay(Tape<T>& tape, const ScalarDecayVars<T>& in, const ScalarDecayOptions& options, const ScalarDecayStates<T>& s,
                    Form form) {
  const std::array states{law_view(s.state), law_view(s.norm), law_view(s.max), law_view(s.value_sum), law_view(s.count)};
  return law<T>(tape, on_tape<BoundScalarDecay>(tape, options), {in.q, in.k, in.v, in.log_decay, in.log_input},
                {.form = form, .states = states});
}

template <class T>
Var<T> channel_decay(Tape<T>& tape, const ChannelDecayVars<T>& in, const ChannelDecayOptions& options, View<T, 4> state,
                     Form form) {
  const std::array states{law_view(state)};
  return law<T>(tape, on_tape<BoundChannelDecay>(tape, options), {in.q, in.k, in.v, in.log_decay, in.bonus},
                {.form = form, .states = states});
}

template <class T>
Var<T> delta(Tape<T>& tape, const DeltaVars<T>& in, const DeltaOptions& options, View<T, 4> state, Form form) {
  const std::array states{law_view(state)};
  return law<T>(tape, on_tape<BoundDelta>(tape, options), {in.q, in.k, in.v, in.beta, in.log_decay, in.a, in.b},
                {.form = form, .states = states});
}

template <class T>
Var<T> scan(Tape<T>& tape, const ScanVars<T>& in, const ScanOptions& options, const ScanStates<T>& s, Form form) {
  const std::array states{law_view(s.state), law_view(s.imag)};
  return law<T>(tape, on_tape<BoundScan>(tape, options), {in.log_decay, in.x, in.angle, in.x_imag},
                {.form = form, .states = states});
}

template <class T>
Var<T> scan_s6(Tape<T>& tape, const ScanS6Vars<T>& in, const ScanOptions& options, View<T, 3> state, Form form) {
  const std::array states{law_view(state)};
  return law<T>(tape, on_tape<BoundScan>(tape, options), {Var<T>(), in.x, Var<T>(), Var<T>(), in.step, in.a, in.b, in.c, in.d},
                {.form = form, .states = states});
}

#define ISOMER_LAW_OPS(T)                                                                                                   \
  template Var<T> attention(Tape<T>&, const AttentionVars<T>&, const AttentionOptions&, Form);                              \
  template Var<T> attention(Tape<T>&, const AttentionVars<T>&, const AttentionOptions&, AttentionStream<T>&);               \
  template Var<T> scalar_decay(Tape<T>&, const ScalarDecayVars<T>&, const ScalarDecayOptions&, const ScalarDecayStates<T>&, \
                               Form);                                                                                       \
  template Var<T> channel_decay(Tape<T>&, const ChannelDecayVars<T>&, const ChannelDecayOptions&, View<T, 4>, Form);        \
  template Var<T> delta(Tape<T>&, const DeltaVars<T>&, const DeltaOptions&, View<T, 4>, Form);                              \
  template Var<T> scan(Tape<T>&, const ScanVars<T>&, const ScanOptions&, const ScanStates<T>&, Form);                       \
  template Var<T> scan_s6(Tape<T>&, const ScanS6Vars<T>&, const ScanOptions&, View<T, 3>, Form)
ISOMER_LAW_OPS(float);
ISOMER_LAW_OPS(double);
#undef ISOMER_LAW_OPS

}  // namespace isomer::ops

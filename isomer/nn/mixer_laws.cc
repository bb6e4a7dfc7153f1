// The laws of a mixer: inputs by role, states where the mixer keeps them.
#include "isomer/autograd/laws.h"
#include "isomer/autograd/views.h"
#include "isomer/nn/mixer_run.h"

namespace isomer {

template <class T>
Var<T> MixerRun<T>::role(const LawRoles& law, std::string_view name) const {
  const int i = law.find(name);
  return i < 0 ? Var<T>() : in(std::size_t(i));
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Law& work) {
  const LawRoles roles{mixer_.graph_, *node_, work};
  return std::visit([&](const auto& options) { return law(roles, options); }, work.options);
}

template <class T>
Var<T> MixerRun<T>::law(const LawRoles& x, const AttentionOptions& options) {
  const AttentionVars<T> vars{
      .q = role(x, "q"), .k = role(x, "k"), .v = role(x, "v"), .log_forget = role(x, "log_forget"), .gate = role(x, "gate")};
  if (state_ != nullptr) return attention(tape_, vars, options, *state_->node(int(at_)).attention);
  AttentionOptions own = options;
  if (mixer_.window_ > 0 && options.window > 0) own.window = mixer_.window_;
  return attention(tape_, vars, own, mixer_.form_);
}

template <class T>
Var<T> MixerRun<T>::law(const LawRoles& x, const ScalarDecayOptions& options) {
  using enum ScalarDecayOptions::Normaliser;
  ScalarDecayStates<T> states;
  if (state_ != nullptr) {
    states.state = kept<4>(0);
    if (options.normaliser != none) states.norm = kept<3>(1);
    if (options.normaliser == max) states.max = kept<2>(2);
    if (options.normaliser == subtract) {
      states.value_sum = kept<3>(2);
      states.count = kept<1>(3);
    }
  }
  return scalar_decay(tape_,
                      {.q = role(x, "q"),
                       .k = role(x, "k"),
                       .v = role(x, "v"),
                       .log_decay = role(x, "log_decay"),
                       .log_input = role(x, "log_input")},
                      options, states, mixer_.form_);
}

template <class T>
Var<T> MixerRun<T>::law(const LawRoles& x, const ChannelDecayOptions& options) {
  return channel_decay(
      tape_,
      {.q = role(x, "q"), .k = role(x, "k"), .v = role(x, "v"), .log_decay = role(x, "log_decay"), .bonus = role(x, "bonus")},
      options, kept<4>(), mixer_.form_);
}

template <class T>
Var<T> MixerRun<T>::law(const LawRoles& x, const DeltaOptions& options) {
  DeltaVars<T> vars{
      .q = role(x, "q"), .k = role(x, "k"), .v = role(x, "v"), .beta = role(x, "beta"), .a = role(x, "a"), .b = role(x, "b")};
  (x.key_decay() ? vars.key_log_decay : vars.log_decay) = role(x, "log_decay");
  return delta(tape_, vars, options, kept<4>(), mixer_.form_);
}

template <class T>
Var<T> MixerRun<T>::law(const LawRoles& x, const ScanOptions& options) {
  const auto flat = [&](std::string_view name) { return x.has(name) ? heads(role(x, name), 1) : Var<T>(); };
  ScanStates<T> states;
  if (state_ != nullptr) {
    states.state = kept<2>(0);
    if (x.has("angle") || x.has("x_imag")) states.imag = kept<2>(1);
  }
  return scan(tape_, {.log_decay = flat("log_decay"), .x = flat("x"), .angle = flat("angle"), .x_imag = flat("x_imag")}, options,
              states, mixer_.form_);
}

template <class T>
Var<T> MixerRun<T>::law(const LawRoles& x, const graph::ScanS6Options&) {
  const auto flat = [&](std::string_view name) { return x.has(name) ? heads(role(x, name), 1) : Var<T>(); };
  return scan_s6(tape_, {.x = flat("x"), .step = flat("step"), .a = role(x, "a"), .b = flat("b"), .c = flat("c"), .d = flat("d")},
                 {}, kept<3>(), mixer_.form_);
}

template Var<float> MixerRun<float>::run(const graph::Law&);
template Var<double> MixerRun<double>::run(const graph::Law&);

}  // namespace isomer

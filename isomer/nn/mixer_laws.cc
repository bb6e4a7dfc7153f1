// The laws of a mixer: inputs by role, states where the mixer keeps them.
#include "isomer/autograd/law.h"
#include "isomer/nn/mixer_run.h"

namespace isomer {

template <class T>
Var<T> MixerRun<T>::run(const graph::Law& work) {
  LawVars<T> vars;
  for (std::size_t i = 0; i < work.places.size(); ++i) vars[work.places[i]] = in(i);
  if (state_ == nullptr) return law<T>(tape_, mixer_.law_at(at_), vars, {.form = mixer_.form_});
  NodeState<T>& kept = state_->node(int(at_));
  if (kept.stream != nullptr) return law<T>(tape_, *work.law, vars, {.stream = kept.stream.get()});
  std::array<LawView, kMostTensors> states;
  for (auto& array : kept.arrays) states[array.place] = array.tensor();
  return law<T>(tape_, *work.law, vars,
                {.form = mixer_.form_, .states = std::span(states).first(work.law->law().states().size())});
}

template Var<float> MixerRun<float>::run(const graph::Law&);
template Var<double> MixerRun<double>::run(const graph::Law&);

}  // namespace isomer

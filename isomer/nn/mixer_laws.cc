// The laws of a mixer: inputs by role, states where the mixer keeps them.
#include "isomer/autograd/elementwise.h"
#include "isomer/autograd/law.h"
#include "isomer/base/error.h"
#include "isomer/kernels/elementwise/sum.h"
#include "isomer/nn/mixer_run.h"

namespace isomer {

template <class T>
Var<T> MixerRun<T>::run(const graph::Law& work) {
  ops::LawVars<T> vars;
  for (std::size_t i = 0; i < work.places.size(); ++i) vars[work.places[i]] = in(i);
  if (pass_.seen > 0 && pass_.seen < tokens()) keep_seen(work, vars);
  if (!pass_.hidden.empty()) return law_on_visible(work, vars);
  if (pass_.state != nullptr) return law_on_values(vars);
  if (state_ == nullptr)
    return ops::law<T>(tape_, mixer_.law_at(at_, pass_.window), vars, {.form = pass_.form, .offsets = sequences_.offsets});
  NodeState<T>& kept = state_->node(int(at_));
  if (!kept.streams.empty()) return law_on_streams(work, vars, kept.streams);
  std::array<LawView, kMostTensors> states;
  for (auto& array : kept.arrays) states[array.place] = array.tensor();
  return ops::law<T>(
      tape_, *work.law, vars,
      {.form = pass_.form, .offsets = sequences_.offsets, .states = std::span(states).first(work.law->law().states().size())});
}

template <class T>
void MixerRun<T>::keep_seen(const graph::Law& work, ops::LawVars<T>& vars) {
  require(!mixer_.causal_ && !mixer_.meets_elsewhere_ && !work.law->counts_distances(work.given) && pass_.offsets.empty() &&
              pass_.hidden.empty(),
          "mixer",
          "expected a mixer whose tokens see all others, at any distance and in one law, for rows that look at the first alone");
  const std::span<const TensorSpec> specs = work.law->law().inputs();
  const bool forgets = work.law->skips_empty_keys();
  Var<T> first;  // 1 at the tokens that are seen
  for (const std::size_t place : work.places) {
    Var<T>& var = vars[place];
    if (specs[place].name != "k" && specs[place].name != "v") continue;
    if (specs[place].axes[0].has(Letter::S)) {
      var = Tape<T>::part(var, slice(var.value, 1, 0, pass_.seen));
      continue;
    }
    require(forgets, "mixer", "expected a law whose keys may be left out, got ", work.name(), " with these options");
    if (!first.present()) {
      first = tape_.make({1, tokens(), 1, 1}, {});
      for (Index t = 0; t < tokens(); ++t) first.value(0, t, 0, 0) = t < pass_.seen ? T(1) : T(0);
    }
    var = ops::multiply(tape_, var, first);
  }
}

template <class T>
Var<T> MixerRun<T>::law_on_visible(const graph::Law& work, const ops::LawVars<T>& vars) {
  const Index B = x_.dim(0), n = tokens();
  require(!mixer_.causal_ && !tape_.recording(), "mixer",
          "expected a mixer that sees the whole input, and a tape that does not record, to hide keys");
  require(Index(pass_.hidden.size()) == n * n, "mixer", "expected ", n, " x ", n, " numbers for the keys that are hidden, got ",
          pass_.hidden.size());
  require(!work.law->counts_distances(work.given), "mixer",
          "expected a mixer without windows and biases by distance to hide keys of");
  const int queries = work.find("q");
  Var<T> y;
  for (Index t = 0; t < n; ++t) {
    std::vector<Index> visible;
    for (Index s = 0; s < n; ++s)
      if (pass_.hidden[std::size_t(t * n + s)] == 0) visible.push_back(s);
    require(!visible.empty(), "mixer", "expected a key that query ", t, " sees, got all of them hidden");
    // A law wants as many queries as keys: all of them are this one.
    ops::LawVars<T> parts = vars;
    for (std::size_t i = 0; i < work.places.size(); ++i) {
      const Var<T> all = in(i);
      if (all.dim(1) == 1) continue;
      Var<T>& part = parts[work.places[i]];
      part = tape_.make({B, Index(visible.size()), all.dim(2), all.dim(3)}, {});
      for (Index s = 0; s < part.dim(1); ++s)
        copy<T>(slice(all.value, 1, int(i) == queries ? t : visible[std::size_t(s)], 1), slice(part.value, 1, s, 1),
                tape_.context());
    }
    const Var<T> one = ops::law<T>(tape_, *work.law, parts, {});
    if (!y.present()) y = tape_.make({B, n, one.dim(2), one.dim(3)}, {});
    copy<T>(slice(one.value, 1, 0, 1), slice(y.value, 1, t, 1), tape_.context());
  }
  return y;
}

template <class T>
Var<T> MixerRun<T>::law_on_streams(const graph::Law& work, const ops::LawVars<T>& vars, std::span<Copied<LawStream>> streams) {
  if (streams.size() == 1) return ops::law<T>(tape_, *work.law, vars, {.stream = streams[0].get()});
  Var<T> y;
  Index i = 0;
  for (const Sequence& one : sequences("mixer", x_.dim(0), tokens(), sequences_.offsets)) {
    LawStream& stream = *streams[std::size_t(i++)];
    if (one.length == 0) continue;
    const auto own = [&](View<T, 4> x) {
      if (x.shape[0] > 1) x = slice(x, 0, one.batch, 1);
      return x.shape[1] > 1 ? slice(x, 1, one.first, one.length) : x;
    };
    ops::LawVars<T> parts = vars;
    for (Var<T>& var : parts)
      if (var.present()) var = Tape<T>::alias(var, own(var.value));
    const Var<T> part = ops::law<T>(tape_, *work.law, parts, {.stream = &stream});
    if (!y.present()) y = tape_.make({x_.dim(0), tokens(), part.dim(2), part.dim(3)}, {});
    copy<T>(part.value, own(y.value), tape_.context());
  }
  return y;
}

template <class T>
Var<T> MixerRun<T>::law_on_values(ops::LawVars<T>& vars) {
  auto& node = pass_.state->node(at_);
  const BoundLaw& bound = mixer_.law_at(at_, pass_.window);
  const std::span<const StateSpec> states = bound.law().states();
  for (std::size_t i = 0; i < states.size(); ++i) {
    Var<T>&var = vars[states[i].input], &kept = node.vars[i];
    if (!states[i].grows()) {
      if (kept.present()) var = kept;
    } else if (var.present()) {
      require(sequences_.offsets.empty(), "mixer",
              "expected a row a sequence beside a state that carries gradients, got packed ones");
      // All tokens so far, of which those of this pass are the last.
      var = kept = ops::append_tokens(tape_, kept, var, {x_.dim(0), tokens(), var.dim(2), var.dim(3)});
    }
  }
  return ops::law<T>(tape_, bound, vars,
                     {.form = pass_.form, .offsets = sequences_.offsets, .finals = std::span(node.vars).first(states.size())});
}

template Var<float> MixerRun<float>::run(const graph::Law&);
template Var<double> MixerRun<double>::run(const graph::Law&);

}  // namespace isomer

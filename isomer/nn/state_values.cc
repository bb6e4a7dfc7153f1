#include "isomer/nn/state_values.h"

#include <algorithm>

#include "isomer/kernels/elementwise/sum.h"
#include "isomer/laws/bound_law.h"
#include "isomer/nn/mixer_state.h"

namespace isomer {

namespace {
/// [n, …] with its last axes last.
Shape4 value_shape(std::span<const Index> shape) {
  Shape4 all{shape[0], 1, 1, 1};
  std::copy(shape.begin() + 1, shape.end(), all.end() - (Index(shape.size()) - 1));
  return all;
}

template <class T, class U>
Var<T> value_of(Tape<T>& tape, const StateArray<U>& array) {
  const Var<T> y = tape.make(value_shape(array.shape), {});
  std::ranges::transform(array.data, y.value.data, [](U number) { return T(number); });
  return y;
}
}  // namespace

template <class T>
StateValues<T>::StateValues(const graph::Graph& graph, Index B, Tape<T>& tape) : nodes_(graph.nodes.size()) {
  MixerState<T> start(graph, B);
  positions_.assign(start.positions().begin(), start.positions().end());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const NodeState<T>& from = start.node(int(i));
    if (const auto* law = std::get_if<graph::Law>(&graph.nodes[i].work)) {
      nodes_[i].vars.resize(law->law->law().states().size());
      for (const StateArray<T>& array : from.arrays) nodes_[i].vars[array.place] = value_of<T>(tape, array);
      continue;
    }
    for (const StateArray<T>& array : from.arrays) nodes_[i].vars.push_back(value_of<T>(tape, array));
    for (const StateArray<double>& sum : from.sums) {
      nodes_[i].vars.push_back(value_of<T>(tape, sum));
      nodes_[i].sum = sum.data;
    }
  }
}

template <class T>
StateValues<T> StateValues<T>::on(Tape<T>& tape) const {
  StateValues copy = *this;
  for (Node& node : copy.nodes_)
    for (Var<T>& var : node.vars)
      if (var.present()) var = tape.input(var.value, var.wanted());
  return copy;
}

template <class T>
void StateValues<T>::receive(Tape<T>& tape, const StateValues& start, Tape<T>& other) {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    for (std::size_t k = 0; k < nodes_[i].vars.size(); ++k) {
      const Var<T> here = nodes_[i].vars[k], there = start.nodes_[i].vars[k];
      if (!here.wanted() || !there.wanted() || !there.slot->written) continue;
      const GradientTarget<T> into = tape.target(here);
      sum_to<T>({.x = other.arrived(there)}, into.view, into.mode, tape.context());
    }
}

template <class T>
void StateValues<T>::advance(std::span<const std::int64_t> offsets, Index tokens) {
  for (std::size_t i = 0; i < positions_.size(); ++i) positions_[i] += offsets.empty() ? tokens : offsets[i + 1] - offsets[i];
}

template class StateValues<float>;
template class StateValues<double>;

}  // namespace isomer

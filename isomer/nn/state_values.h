#pragma once
// The state of a mixer as values of a tape: gradients go through it from one pass into the pass before. For truncated
// backpropagation through time that carries its gradient on, and for sequences that are cut over several tapes.
//
//   StateValues<float> cut(mixer.graph(), B, first);                 // before the first token
//   Var<float> y = mixer.forward(first, x1, {.state = &cut});        // `cut` is now what these tokens end in
//   const StateValues<float> start = cut.on(second);                 // the same numbers on another tape
//   StateValues<float> end = start;
//   Var<float> z = mixer.forward(second, x2, {.state = &end});
//   second.backward(mean(second, z));
//   cut.receive(first, start, second);                               // what arrived at the start of the second goes on
//   first.backward();
//
// A plain value like MixerState, but its numbers are the tapes': it lives as long as they do. A cache of keys keeps all of them,
// whatever the window.
#include <span>
#include <vector>

#include "isomer/autograd/tape.h"
#include "isomer/mixers/graph.h"

namespace isomer {

template <class T>
class StateValues {
 public:
  /// Of one node of the graph. A running sum is kept in double; its value on the tape is for the gradient.
  struct Node {
    std::vector<Var<T>> vars = {};  // of a law: by the places of its states
    std::vector<double> sum = {};
  };
  /// The state before the first of B sequences' tokens. Throws Error for a mixer that needs the whole sequence at once.
  StateValues(const graph::Graph& graph, Index B, Tape<T>& tape);

  [[nodiscard]] Index batch() const { return Index(positions_.size()); }
  /// Tokens seen so far of each sequence.
  [[nodiscard]] std::span<const std::int64_t> positions() const { return positions_; }

  /// The same numbers as inputs of another tape, which want gradients if these do.
  [[nodiscard]] StateValues on(Tape<T>& tape) const;
  /// Seeds the gradients of these values of `tape` with those that arrived at `start`, what `on` made of them for `other`.
  void receive(Tape<T>& tape, const StateValues& start, Tape<T>& other);

  // For the mixer.
  [[nodiscard]] Node& node(std::size_t i) { return nodes_[i]; }
  void advance(std::span<const std::int64_t> offsets, Index tokens);

 private:
  std::vector<std::int64_t> positions_;
  std::vector<Node> nodes_;  // one for each of the graph
};

extern template class StateValues<float>;
extern template class StateValues<double>;

}  // namespace isomer

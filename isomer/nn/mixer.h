#pragma once
// A layer that runs a mixer's graph: on a tape for training, and on a state for streaming.
//
//   Mixer<float> mixer(build_mixer("gla", {.width = 256}), parameters, "layers.0.mixer");
//   Var<float> y = mixer.forward(tape, x);                  // x, y [B, T, 1, width]
//
//   MixerState<float> state = mixer.start(1);
//   (void)mixer.prefill(tape, prompt, state);               // any number of tokens
//   Var<float> next = mixer.step(tape, token, state);       // one
//
// Its parameters are in the store, under `prefix`; draw them with initialise(). Linear nodes of one input are one product.
// prefill and step give what forward gives for the same tokens, wherever the sequence is cut, and leave nothing on the tape to go
// back through. A mixer serves one thread at a time. After the first call nothing is allocated but what a state grows by.
#include <map>
#include <string>
#include <vector>

#include "isomer/autograd/tape.h"
#include "isomer/laws/law.h"
#include "isomer/mixers/graph.h"
#include "isomer/nn/mixer_schedule.h"
#include "isomer/nn/mixer_state.h"
#include "isomer/nn/parameters.h"

namespace isomer {

/// What a law of the mixer was given: isomer::apply(find_law(law), {inputs, settings, …}) makes `outputs` again.
struct LawCall {
  int node = -1;
  std::string law = {};
  Tensors inputs = {};  // in double
  Settings settings = {};
  Tensors outputs = {};  // o; scan: h and h_imag
};

/// The parameters of a node; most have none.
template <class T>
struct NodeWeights {
  Var<T> weight = {}, bias = {};
  Var<T> output_weight = {}, output_bias = {};  // of a network's second layer
};

/// Values that go from layer to layer beside x: those that a mixer has from the first layer of its preset, one for each node of
/// graph::taken(), and where it puts those that it gives, one for each of Graph::given or none.
template <class T>
struct Carried {
  std::span<const Var<T>> taken = {};
  std::span<Var<T>> given = {};
};

template <class T>
class Mixer {
 public:
  Mixer(graph::Graph graph, Parameters<T>& parameters, const std::string& prefix);

  [[nodiscard]] const graph::Graph& graph() const { return graph_; }

  /// Throws Error when something is to be taken from another layer and is not there, or is of another shape.
  [[nodiscard]] Var<T> forward(Tape<T>& tape, Var<T> x, const Carried<T>& carried = {});

  /// The state of B sequences before their first token. Throws Error for a mixer that is not causal.
  [[nodiscard]] MixerState<T> start(Index B) const { return MixerState<T>(graph_, B); }
  [[nodiscard]] MixerState<T> load(const std::string& path) const { return MixerState<T>::load(path, graph_); }
  [[nodiscard]] Var<T> prefill(Tape<T>& tape, Var<T> x, MixerState<T>& state, const Carried<T>& carried = {});
  [[nodiscard]] Var<T> step(Tape<T>& tape, Var<T> x, MixerState<T>& state, const Carried<T>& carried = {});

  /// The window of attention layers that have one, in forward(); 0: their own. Other layers have none.
  void set_window(Index window);

  /// For checks: the form in which laws run in forward(), if they offer it.
  void set_form(Form form) { form_ = form; }

  /// What a node computed in the last call of forward(), if others than elementwise nodes use it; valid as long as the tape's
  /// values are.
  [[nodiscard]] Var<T> value(int node) const { return values_[std::size_t(node)]; }

  /// The calls of all laws of forward(x).
  [[nodiscard]] std::vector<LawCall> law_calls(Tape<T>& tape, Var<T> x, const Carried<T>& carried = {});

 private:
  template <class>
  friend class MixerRun;
  /// Linear nodes of one input.
  struct Product {
    std::vector<int> nodes;
    std::vector<Index> sizes;
    std::vector<Var<T>> pieces;
    NodeWeights<T> weights;
  };
  void add_products(Parameters<T>& parameters, const std::string& prefix);
  [[nodiscard]] Var<T> run(Tape<T>& tape, Var<T> x, MixerState<T>* state, const Carried<T>& carried);

  graph::Graph graph_;
  std::vector<int> taken_;  // of the graph
  [[nodiscard]] const BoundLaw& law_at(std::size_t node) const {
    return laws_ != nullptr && (*laws_)[node] != nullptr ? *(*laws_)[node] : *std::get<graph::Law>(graph_.nodes[node].work).law;
  }

  Form form_ = Form::automatic;
  // Laws with another window, by node, for every window there was: what is on a tape goes back through its own.
  using Laws = std::vector<std::shared_ptr<const BoundLaw>>;
  std::map<Index, Laws> windows_;
  const Laws* laws_ = nullptr;  // those of now; null: the graph's
  std::vector<Product> products_;
  std::vector<int> product_of_;  // of each node; −1: it is no part of one
  MixerSchedule schedule_;
  std::vector<NodeWeights<T>> weights_;
  std::vector<Var<T>> values_;           // of each node, while the graph runs
  std::vector<Var<T>> parts_, results_;  // of a group or a concatenation
};

extern template class Mixer<float>;
extern template class Mixer<double>;

}  // namespace isomer

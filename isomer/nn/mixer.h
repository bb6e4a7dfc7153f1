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
// back through. A mixer is weights and never changes as it runs: what a pass computes is the tape's, so any number of threads may
// run one mixer, each on a tape and a state of its own. After the first call nothing is allocated but what a state grows by.
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "isomer/autograd/tape.h"
#include "isomer/laws/law.h"
#include "isomer/mixers/graph.h"
#include "isomer/nn/mixer_schedule.h"
#include "isomer/nn/mixer_state.h"
#include "isomer/nn/parameters.h"
#include "isomer/nn/state_values.h"

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

/// What one pass has of its own.
template <class T>
struct MixerPass {
  // Values that go from layer to layer beside x: those that a mixer has from the first layer of its preset, one for each node of
  // graph::taken(), and where it puts those that it gives, one for each of Graph::given or none.
  std::span<const Var<T>> taken = {};
  std::span<Var<T>> given = {};
  // How x is sequences: packed ones start afresh, or go on from the state's. Positions are the state's.
  std::span<const std::int64_t> offsets = {};
  // In forward(): [B], tokens of each row before its padding, which a mixer that is not causal does not see; empty: all.
  std::span<const Index> lengths = {};
  Index window = 0;  // of attention layers that have one, in forward(); 0: their own
  // In forward() of a mixer that is not causal and whose tokens meet in its law alone: those that all look at are the first so
  // many of each row; 0: all.
  Index seen = 0;
  // In forward() of a mixer that is not causal, on a tape that does not record: [T, T], 1 where a query does not see a key.
  std::span<const std::uint8_t> hidden = {};
  Form form = Form::automatic;  // for checks: how laws run in forward(), if they offer it
  // In forward(): where it begins, and then where it ends (state_values.h).
  StateValues<T>* state = nullptr;
};

template <class T>
class Mixer {
 public:
  Mixer(graph::Graph graph, Parameters<T>& parameters, const std::string& prefix);

  [[nodiscard]] const graph::Graph& graph() const { return graph_; }

  /// Throws Error when something is to be taken from another layer and is not there, or is of another shape.
  [[nodiscard]] Var<T> forward(Tape<T>& tape, Var<T> x, const MixerPass<T>& pass = {}) const;
  /// The same: what every node computed, the last of which is y. A node that only elementwise ones use has no value of its own.
  [[nodiscard]] std::span<const Var<T>> values(Tape<T>& tape, Var<T> x, const MixerPass<T>& pass = {}) const;

  /// The state of B sequences before their first token. Throws Error for a mixer that is not causal.
  [[nodiscard]] MixerState<T> start(Index B) const { return MixerState<T>(graph_, B); }
  [[nodiscard]] MixerState<T> load(const std::string& path) const { return MixerState<T>::load(path, graph_); }
  [[nodiscard]] Var<T> prefill(Tape<T>& tape, Var<T> x, MixerState<T>& state, const MixerPass<T>& pass = {}) const;
  [[nodiscard]] Var<T> step(Tape<T>& tape, Var<T> x, MixerState<T>& state, const MixerPass<T>& pass = {}) const;

  /// The calls of all laws of forward(x).
  [[nodiscard]] std::vector<LawCall> law_calls(Tape<T>& tape, Var<T> x, const MixerPass<T>& pass = {}) const;

 private:
  template <class>
  friend class MixerRun;
  /// Linear nodes of one input.
  struct Product {
    std::vector<int> nodes;
    std::vector<Index> sizes;
    NodeWeights<T> weights;
  };
  /// Laws with another window, by node: what is on a tape goes back through its own.
  struct Windows {
    std::mutex mutex;
    std::map<std::pair<std::size_t, Index>, std::shared_ptr<const BoundLaw>> laws;
  };
  [[nodiscard]] const BoundLaw& law_at(std::size_t node, Index window) const;
  void add_products(Parameters<T>& parameters, const std::string& prefix);
  [[nodiscard]] Var<T> without_padding(Tape<T>& tape, Var<T> x, const MixerPass<T>& pass) const;
  [[nodiscard]] std::span<const Var<T>> run(Tape<T>& tape, Var<T> x, MixerState<T>* state, const MixerPass<T>& pass) const;

  graph::Graph graph_;
  bool causal_, whole_rows_, meets_elsewhere_;
  std::vector<int> taken_;  // of the graph
  std::vector<Product> products_;
  std::vector<int> product_of_;  // of each node; −1: it is no part of one
  MixerSchedule schedule_;
  std::unique_ptr<Windows> windows_;
  std::vector<NodeWeights<T>> weights_;
};

extern template class Mixer<float>;
extern template class Mixer<double>;

}  // namespace isomer

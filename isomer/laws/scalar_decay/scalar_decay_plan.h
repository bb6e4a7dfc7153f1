#pragma once
// How a call is cut into chunks, and the pieces both passes need: a chunk's tokens, its scratch, states in and out.
#include "isomer/laws/chunk_pass.h"
#include "isomer/laws/planner.h"
#include "isomer/laws/scalar_decay/scalar_decay.h"
#include "isomer/laws/scalar_decay/scalar_decay_chunk.h"

namespace isomer::scalar_decay_detail {

template <class T>
struct Plan : StateChunks {
  ScalarDecayInputs<T> in;  // the last axis of q, k and v is dense
  ScalarDecayOptions options;
  Rule rule;
  bool walks;  // chunks come one after the other and are walked through a few tokens at a time, few heads in slices

  [[nodiscard]] Index edge_size() const { return scalar_decay_detail::edge_size(K, V); }
  [[nodiscard]] Edge<T> edge(T* edges, Index n, Index h, Index c) const {
    return edge_at(edges + edge_index(n, h, c) * edge_size(), K, V);
  }
  [[nodiscard]] Edge<T> take_edge(Workspace& workspace) const { return edge_at(workspace.take<T>(edge_size()), K, V); }
  [[nodiscard]] Scratch<T> take_scratch(Workspace& workspace) const;
  /// The same scratch with a state of its own: for a neighbour whose chunks alternate with those of `s`.
  [[nodiscard]] Scratch<T> beside(const Scratch<T>& s, Workspace& workspace) const;
  [[nodiscard]] BackwardScratch<T> take_backward_scratch(Workspace& workspace) const;
  /// The edge that is kept in the scratch: its state is where the matrix products read it.
  [[nodiscard]] Edge<T> scratch_edge(const Scratch<T>& s) const;
  /// An edge whose state has these columns alone; what is beside the state comes with the first of them.
  void copy_edge(const Edge<T>& from, const Edge<T>& to, Columns columns) const;

  /// Initial states of a head as they are, and an edge into final states as it is (not the count, which all heads share), with
  /// these columns alone, as above. An edge without a state leaves the state alone.
  void fetch_states(const HeadColumns& at, const Edge<T>& edge) const;
  void store_states(const Edge<T>& edge, const HeadColumns& at, const ScalarDecayStates<T>& to) const;
  /// The same with the sums of `subtract` moved about means: into the edge before the first chunk, out of the one after the last.
  void enter(const HeadColumns& at, const Edge<T>& edge) const;
  void leave(const Edge<T>& edge, const HeadColumns& at, const ScalarDecayStates<T>& to) const;
  /// The same for gradients of states; for `subtract` they are taken about the means `about`.
  void enter_gradient(const HeadColumns& at, const ScalarDecayStates<const T>& from, const Edge<T>& about,
                      const Edge<T>& edge) const;
  void leave_gradient(const Edge<T>& edge, const HeadColumns& at, const Edge<T>& about, const ScalarDecayStates<T>& to) const;

  /// Tokens that the initial state of sequence n has seen (subtract).
  [[nodiscard]] double initial_count(Index n) const { return in.initial.count.present() ? double(in.initial.count(n)) : 0.0; }
  [[nodiscard]] Tokens<T> tokens(Index n, Index h, Index c) const;
  /// All that chunk c of a head reads (of the values, some columns), nothing if there is no such chunk.
  void add_prefetch(PrefetchList<T>& all, Index n, Index h, Index c, Columns columns) const;
};

/// What Form::automatic takes for so many heads of all sequences.
[[nodiscard]] Choice choose(const ScalarDecayOptions& options, Carries carries, Index heads, Index T, Index K, Index V);

/// `taped`: the states at the edges are kept. `scratch` holds copies of inputs whose rows are not dense.
template <class T>
[[nodiscard]] Plan<T> make_plan(const ScalarDecayInputs<T>& in, const ScalarDecayOptions& options, Form form, bool taped,
                                Workspace& scratch);

// scalar_decay_step.cc, scalar_decay_forward.cc, scalar_decay_backward.cc
template <class T>
void step(const Plan<T>& plan, const ScalarDecayOutputs<T>& out, Context& context);
template <class T>
void forward(const Plan<T>& plan, const ScalarDecayOutputs<T>& out, Context& context);
/// Only the edges, into `edges` (one for each of plan.all_edges()).
template <class T>
void forward_edges(const Plan<T>& plan, T* edges, Context& context);
template <class T>
void backward(const Plan<T>& plan, const ScalarDecayCotangents<T>& given, const ScalarDecayGradients<T>& grad, Context& context);

}  // namespace isomer::scalar_decay_detail

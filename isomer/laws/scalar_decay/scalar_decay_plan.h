#pragma once
// How a call is cut into chunks, and the pieces both passes need: a chunk's tokens, its scratch, states in and out.
#include "isomer/laws/chunks.h"
#include "isomer/laws/planner.h"
#include "isomer/laws/scalar_decay/scalar_decay.h"
#include "isomer/laws/scalar_decay/scalar_decay_chunk.h"

namespace isomer::scalar_decay_detail {

template <class T>
struct Plan : Chunks {
  ScalarDecayInputs<T> in;  // the last axis of q, k and v is dense
  ScalarDecayOptions options;
  Rule rule;
  Index K, V;
  bool walks;  // chunks come one after the other and are walked through a few tokens at a time, few heads in slices

  [[nodiscard]] Columns all_columns() const { return {0, V}; }
  [[nodiscard]] Edge<T> edge(T* edges, Index n, Index h, Index c) const {
    return edge_at(edges + edge_index(n, h, c) * edge_size(K, V), K, V);
  }
  [[nodiscard]] Scratch<T> take_scratch(Workspace& workspace) const;
  /// The same scratch with a state of its own: for a neighbour whose chunks alternate with those of `s`.
  [[nodiscard]] Scratch<T> beside(const Scratch<T>& s, Workspace& workspace) const;
  [[nodiscard]] BackwardScratch<T> take_backward_scratch(Workspace& workspace) const;
  /// The edge that is kept in the scratch: its state is where the products read it.
  [[nodiscard]] Edge<T> scratch_edge(const Scratch<T>& s) const;
  /// An edge whose state has these columns alone; what is beside the state comes with the first of them.
  void copy_edge(const Edge<T>& from, const Edge<T>& to, Columns columns) const;

  /// Initial states of head h of sequence n as they are, and an edge into final states as it is (not the count, which all heads
  /// share), with these columns alone, as above. An edge without a state leaves the state alone.
  void fetch_states(Index n, Index h, const Edge<T>& edge, Columns columns) const;
  void store_states(Index n, Index h, const Edge<T>& edge, Columns columns, const ScalarDecayStates<T>& to) const;
  /// The same with the sums of `subtract` moved about means: into the edge before the first chunk, out of the one after the last.
  void enter(Index n, Index h, const Edge<T>& edge, Columns columns) const;
  void leave(Index n, Index h, const Edge<T>& edge, Columns columns, const ScalarDecayStates<T>& to) const;
  /// The same for gradients of states; for `subtract` they are taken about the means `about`.
  void enter_gradient(Index n, Index h, const ScalarDecayStates<const T>& from, const Edge<T>& about, const Edge<T>& edge) const;
  void leave_gradient(Index n, Index h, const Edge<T>& edge, const Edge<T>& about, const ScalarDecayStates<T>& to) const;

  [[nodiscard]] Tokens<T> tokens(Index n, Index h, Index c) const;
  /// q, k and some columns of v of chunk c of the head, if there is such a chunk.
  void add_ahead(Ahead<T>& a, Index n, Index h, Index c, Columns columns) const {
    if (c >= chunks(n)) return;
    const Tokens<T> x = only(columns, tokens(n, h, c));
    a.add(x.q.data, x.q.stride, K, x.C);
    a.add(x.k.data, x.k.stride, K, x.C);
    a.add(x.v.data, x.v.stride, x.V, x.C);
  }
  void add_ahead(Ahead<T>& a, Index n, Index h, Index c) const { add_ahead(a, n, h, c, all_columns()); }
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

#pragma once
// How a call is cut into chunks, and the pieces both passes need: a chunk's tokens, its scratch, states in and out.
#include "isomer/laws/chunk_pass.h"
#include "isomer/laws/delta/delta.h"
#include "isomer/laws/delta/delta_chunk.h"

namespace isomer::delta_detail {

/// Backward, with few heads: columns of the gradient of the state that one task carries from chunk to chunk, and chunks of a
/// wave, whose matrices wait for it: few enough to stay in the caches of two cores, 70 KiB each for heads of 64 (three waves),
/// and enough that threads seldom wait for each other.
inline constexpr Index kSlice = 32;
inline constexpr Index kBackwardWave = 8;

template <class T>
struct Plan : StateChunks {
  DeltaInputs<T> in;  // the last axis of q, k, v, a, b and key_log_decay is dense
  Rule rule;

  /// Rows of z in a chunk of C tokens.
  [[nodiscard]] Index N() const { return rule.writes() * C; }
  /// An edge is the state, transposed [V,K], and behind it the rows z [N,V] of the chunk that begins there: what that chunk's
  /// backward pass needs. Edges are kept a cache line apart.
  [[nodiscard]] Index edge_size() const { return round_up((K + N()) * V, kPad); }
  template <class U>
  [[nodiscard]] U* edge(U* edges, Index n, Index h, Index c) const {
    return edges == nullptr ? nullptr : edges + edge_index(n, h, c) * edge_size();
  }
  [[nodiscard]] Tokens<T> tokens(Index n, Index h, Index c) const;
  /// All that a chunk reads (of the values, some columns), nothing if there is no such chunk.
  void add_prefetch(PrefetchList<T>& all, Index n, Index h, Index c, Columns columns) const;
  void add_prefetch(PrefetchList<T>& all, Index n, Index h, Index c) const { add_prefetch(all, n, h, c, all_columns()); }

  [[nodiscard]] Matrices<T> take_matrices(Workspace& workspace) const;
  [[nodiscard]] LoadScratch<T> take_load_scratch(Workspace& workspace) const;
  [[nodiscard]] BackwardScratch<T> take_backward_scratch(Workspace& workspace) const;

  /// Few heads, backward: gradients of states are carried slice by slice over a wave of chunks whose matrices are ready.
  [[nodiscard]] Index slices() const { return ceil_div(V, kSlice); }
  [[nodiscard]] HeadColumns slice(Index i) const {
    const Index head = i / slices(), begin = i % slices() * kSlice;
    return {head / H, head % H, {begin, V - begin < kSlice ? V - begin : kSlice}};
  }
  /// `chunks` of all heads together.
  [[nodiscard]] Index wave(Index chunks) const { return heads() > 0 && heads() < chunks ? chunks / heads() : 1; }
  /// The most chunks of a sequence.
  [[nodiscard]] Index longest() const;
};

/// What Form::automatic takes: step or chunk.
[[nodiscard]] Choice choose(bool low_rank, bool taped, Index T, Index K, Index V);

/// `scratch` holds copies of inputs whose rows are not dense.
template <class T>
[[nodiscard]] Plan<T> make_plan(const DeltaInputs<T>& in, const DeltaOptions& options, bool taped, Workspace& scratch);

// delta_step.cc, delta_forward.cc, delta_backward.cc
template <class T>
void step(const Plan<T>& plan, const DeltaOutputs<T>& out, Context& context);
template <class T>
void forward(const Plan<T>& plan, const DeltaOutputs<T>& out, Context& context);
/// Only the edges, into `edges` (one for each of plan.all_edges()).
template <class T>
void forward_edges(const Plan<T>& plan, T* edges, Context& context);
template <class T>
void backward(const Plan<T>& plan, const DeltaCotangents<T>& given, const DeltaGradients<T>& grad, Context& context);

}  // namespace isomer::delta_detail

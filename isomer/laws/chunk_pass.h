#pragma once
// What the laws with a state [K,V] for each head share (channel_decay, delta, scalar_decay): q, k and v cut into chunks, and the
// passes that carry a state from chunk to chunk. A law adds its gates, its kernels and what it keeps at the edge of a chunk.
#include <algorithm>

#include "isomer/laws/chunks.h"
#include "isomer/laws/tape.h"
#include "isomer/laws/with_law_isa.h"

namespace isomer {

struct StateChunks : Chunks {
  Index K = 0, V = 0;

  [[nodiscard]] Columns all_columns() const { return {0, V}; }
  [[nodiscard]] HeadColumns head(Index i) const { return {i / H, i % H, all_columns()}; }
  /// q, k and v of chunk c of a head.
  template <class Inputs>
  [[nodiscard]] auto tokens_of_head(const Inputs& in, Index n, Index h, Index c) const {
    using T = std::remove_cvref_t<decltype(*in.q.data)>;
    return chunk::Tokens<T>{tokens_of(n, c), K, V, rows(in.q, n, h, c), rows(in.k, n, h, c), rows(in.v, n, h, c)};
  }
};

/// The sequences of a call in chunks of `chunk` tokens, if that is 0 of chosen(all heads of all sequences); `whole`: in
/// one chunk each.
template <class Inputs, class Chosen>
[[nodiscard]] StateChunks cut_heads(const char* op, const Inputs& in, Index chunk, bool whole, Chosen&& chosen) {
  const Index H = std::max({in.q.shape[2], in.k.shape[2], in.v.shape[2]}), K = in.q.shape[3], V = in.v.shape[3];
  PoolVector<Sequence> all = sequences(op, in.q.shape[0], in.q.shape[1], in.offsets);
  const Index C = chunk > 0 ? chunk : chosen(Index(all.size()) * H);
  return {make_chunks(std::move(all), H, C, whole), K, V};
}

enum class Order { forward, backward };

/// One task of a pass over chunks: heads h … h + count − 1, which take turns chunk by chunk. The pass is the law's own:
///   take_scratch(workspace)               scratch of the task
///   enter(head, scratch, workspace)       what a head carries from chunk to chunk: a state, or the gradient of one
///   chunk<I>(head, c, scratch, carried)   moves it over chunk c
///   leave<I>(head, scratch, carried)      after the last chunk
template <Isa I, Order order, class Pass>
void carry_heads(const Pass& pass, const HeadColumns& first, Index count, Workspace& workspace) {
  const auto scratch = pass.take_scratch(workspace);
  const auto head = [&](Index i) { return HeadColumns{first.n, first.h + i, first.columns}; };
  const Index chunks = pass.plan.chunks(first.n);
  decltype(pass.enter(first, scratch, workspace)) carried[kNeighbours];
  for (Index i = 0; i < count; ++i) carried[i] = pass.enter(head(i), scratch, workspace);
  for (Index c = 0; c < chunks; ++c)
    for (Index i = 0; i < count; ++i)
      pass.template chunk<I>(head(i), order == Order::forward ? c : chunks - 1 - c, scratch, carried[i]);
  for (Index i = 0; i < count; ++i) pass.template leave<I>(head(i), scratch, carried[i]);
}

/// A whole pass: heads in groups of neighbours, or few heads in slices of columns.
template <Order order, template <class> class Pass, class T>
void carry_groups(const Pass<T>& pass, Context& context) {
  with_law_isa<T>(context.isa(), [&]<Isa I>() {
    pass.plan.each_group(context, [&](Index n, Index h, Index count, Workspace& workspace) {
      carry_heads<I, order>(pass, {n, h, pass.plan.all_columns()}, count, workspace);
    });
  });
}
template <Order order, template <class> class Pass, class T>
void carry_slices(const Pass<T>& pass, Context& context) {
  with_law_isa<T>(context.isa(), [&]<Isa I>() {
    pass.plan.each_slice(context, pass.plan.V, [&](Index n, Index h, Index count, Columns columns, Workspace& workspace) {
      carry_heads<I, order>(pass, {n, h, columns}, count, workspace);
    });
  });
}

/// Where a step reads the state [K,V] of a head and where it leaves it: rows of V dense elements, in place where the views have
/// such rows and there are tokens, else in scratch that was filled from the one and is to be stored to the other.
template <class T>
struct StatePlace {
  chunk::Rows<const T> from;
  chunk::Rows<T> to;
  T* fetched;  // null: read in place
  T* kept;     // null: written in place
};
template <class T>
[[nodiscard]] StatePlace<T> place_state(const View<const T, 4>& initial, const View<T, 4>& last, Index n, Index h, Index K,
                                        Index V, bool may_stay, Workspace& workspace) {
  const bool reads = may_stay && in_place(initial), writes = may_stay && in_place(last);
  T* own = reads && writes ? nullptr : workspace.take<T>(K * V);
  return {reads ? chunk::Rows<const T>{initial.at(n, h), initial.stride[2]} : chunk::Rows<const T>{own, V},
          writes ? chunk::Rows<T>{last.at(n, h), last.stride[2]} : chunk::Rows<T>{own, V}, reads ? nullptr : own,
          writes ? nullptr : own};
}

/// The states at the edges of chunks, for a backward pass: those of a tape of the same call, or computed again by the law's
/// forward_edges(plan, edges, context).
template <class T, class Plan>
[[nodiscard]] T* edges_of(const ChunkTape<T>* tape, const Plan& plan, Context& context) {
  const Index size = plan.all_edges() * plan.edge_size();
  if (tape && tape->holds(plan.C, size)) return tape->edges.data();
  T* edges = context.workspace().template take<T>(size);
  forward_edges(plan, edges, context);
  return edges;
}

}  // namespace isomer

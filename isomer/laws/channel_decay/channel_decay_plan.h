#pragma once
// How a call is cut into chunks, and the pieces both passes need: a chunk's tokens, its scratch, states in and out.
#include "isomer/laws/channel_decay/channel_decay.h"
#include "isomer/laws/channel_decay/channel_decay_chunk.h"
#include "isomer/laws/chunk_pass.h"
#include "isomer/laws/planner.h"

namespace isomer::channel_decay_detail {

template <class T>
struct Plan : StateChunks {
  ChannelDecayInputs<T> in;  // the last axis of q, k, v and log_decay is dense
  double scale;
  bool before;
  bool walks;      // chunks that come one after the other are walked through a few tokens at a time
  const T* bonus;  // [H, padded(K)] of Read::before
  Index bonus_stride;

  [[nodiscard]] Rule<T> rule(Index h) const { return {before, scale, bonus + h * bonus_stride}; }
  /// States are kept a cache line apart.
  [[nodiscard]] Index edge_size() const { return round_up(K * V, kPad); }
  [[nodiscard]] T* state(T* edges, Index n, Index h, Index c) const { return edges + edge_index(n, h, c) * edge_size(); }
  /// [K + C, V]: a state and the values of a chunk.
  [[nodiscard]] T* take_state_and_values(Workspace& workspace) const { return workspace.take<T>((K + C) * V + kPad); }
  [[nodiscard]] Scratch<T> take_scratch(Workspace& workspace) const;
  [[nodiscard]] BackwardScratch<T> take_backward_scratch(Workspace& workspace) const;

  [[nodiscard]] Tokens<T> tokens(Index n, Index h, Index c) const;
  /// All that chunk c of a head reads (of the values, some columns), nothing if there is no such chunk.
  void add_prefetch(PrefetchList<T>& all, Index n, Index h, Index c, Columns columns) const;
};

/// What Form::automatic takes for so many heads of all sequences.
[[nodiscard]] Choice choose(Carries carries, Index heads, Index T, Index K, Index V);

/// `taped`: the states at the edges are kept. `scratch` holds copies of inputs whose rows are not dense.
template <class T>
[[nodiscard]] Plan<T> make_plan(const ChannelDecayInputs<T>& in, const ChannelDecayOptions& options, Form form, bool taped,
                                Workspace& scratch);

// channel_decay_step.cc, channel_decay_forward.cc, channel_decay_backward.cc
template <class T>
void step(const Plan<T>& plan, const ChannelDecayOutputs<T>& out, Context& context);
template <class T>
void forward(const Plan<T>& plan, const ChannelDecayOutputs<T>& out, Context& context);
/// Only the states, into `edges` (one for each of plan.all_edges()).
template <class T>
void forward_edges(const Plan<T>& plan, T* edges, Context& context);
template <class T>
void backward(const Plan<T>& plan, const ChannelDecayCotangents<T>& given, const ChannelDecayGradients<T>& grad,
              Context& context);

}  // namespace isomer::channel_decay_detail

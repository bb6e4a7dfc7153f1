#include "isomer/laws/channel_decay/channel_decay_plan.h"

#include <algorithm>
#include <cmath>

namespace isomer::channel_decay_detail {

namespace {

// Costs of the planner's model; `edge` was fitted to the best chunk of a sweep (`isomer bench --explain --law channel_decay`). A
// chunk of 24 with K = V = 64 works on 75 KiB forward, one of 48 on 250 KiB backward, of a 512 KiB L2.
constexpr ChunkCosts kForward{.pair = 1, .state = 4, .edge = 9, .step = 10};
// A tape keeps a state for each chunk: one of 48 tokens is as large as their q, k, v and log_decay.
constexpr ChunkCosts kTaped{.pair = 3.5, .state = 12, .edge = 200, .step = 0};
// Backward, chunks side by side write and read a state each.
constexpr ChunkCosts kSplit{.pair = 1, .state = 4, .edge = 64, .step = 0};

const ChunkCosts& costs_of(bool taped, Index heads) { return !taped ? kForward : heads < kSplitHeads ? kSplit : kTaped; }

// Rows of pairs have room for a vector beyond the last token.
Index pair_row(Index C) { return row_of(C + kPad); }

}  // namespace

Choice choose(Carries carries, Index heads, Index T, Index K, Index V) {
  return best_form(costs_of(carries.tape, heads), T, K, V, carries);
}

template <class T>
Plan<T> make_plan(const ChannelDecayInputs<T>& in, const ChannelDecayOptions& options, Form form, bool taped,
                  Workspace& scratch) {
  const Index H = in.log_decay.shape[2], K = in.q.shape[3], V = in.v.shape[3], P = padded(K);
  PoolVector<Sequence> all = sequences("channel_decay", in.q.shape[0], in.q.shape[1], in.offsets);
  const Index C = options.chunk > 0 ? options.chunk : best_chunk(costs_of(taped, Index(all.size()) * H), K, V);
  const double scale = options.scale.value_or(1 / std::sqrt(double(K)));
  const bool before = options.read == ChannelDecayOptions::Read::before;
  Plan<T> plan{
      make_chunks(std::move(all), H, C, form == Form::parallel), in, K, V, scale, before, form != Form::parallel, nullptr, 0};
  plan.in.q = dense_rows(in.q, scratch);
  plan.in.k = dense_rows(in.k, scratch);
  plan.in.v = dense_rows(in.v, scratch);
  plan.in.log_decay = dense_rows(in.log_decay, scratch);
  if (!before) return plan;
  if (in.bonus.present() && in.bonus.stride[1] == 1 && K == P) {
    plan.bonus = in.bonus.data, plan.bonus_stride = in.bonus.stride[0];
    return plan;
  }
  T* bonus = scratch.take<T>(H * P);
  for (Index h = 0; h < H; ++h)
    for (Index a = 0; a < P; ++a) bonus[h * P + a] = in.bonus.present() && a < K ? in.bonus(h, a) : T(0);
  plan.bonus_stride = P;
  plan.bonus = bonus;
  return plan;
}

template <class T>
Tokens<T> Plan<T>::tokens(Index n, Index h, Index c) const {
  return {.C = tokens_of(n, c),
          .K = K,
          .V = V,
          .q = rows(in.q, n, h, c),
          .k = rows(in.k, n, h, c),
          .v = rows(in.v, n, h, c),
          .log_decay = rows(in.log_decay, n, h, c),
          .empty = c == 0 && !in.initial_state.present()};
}

template <class T>
void Plan<T>::add_gates_and_keys(Ahead<T>& ahead, Index n, Index h, Index c) const {
  if (c < 0 || c >= chunks(n)) return;
  const Tokens<T> x = tokens(n, h, c);
  ahead.add(x.log_decay.data, x.log_decay.stride, K, x.C);
  ahead.add(x.k.data, x.k.stride, K, x.C);
}
template <class T>
void Plan<T>::add_queries_and_values(Ahead<T>& ahead, Index n, Index h, Index c, Columns columns) const {
  if (c < 0 || c >= chunks(n)) return;
  const Tokens<T> x = only(columns, tokens(n, h, c));
  ahead.add(x.v.data, x.v.stride, x.V, x.C);
  ahead.add(x.q.data, x.q.stride, K, x.C);
}

template <class T>
Scratch<T> Plan<T>::take_scratch(Workspace& workspace) const {
  const Index row = pair_row(C), P = padded(K), R = row_of(K), blocks = blocks_of(C);
  const auto take = [&](Index count) { return workspace.take<T>(count); };
  return {.q = take(C * R),
          .k = take(C * R),
          .decay = take(C * R),
          .q_block = take(C * R),
          .k_block = take(C * R),
          .block_decay = take(std::max(blocks, ceil_div(C, kSmallestGroup)) * R),
          .entered = take(blocks * R),
          .carry = take(P),
          .qw = take(C * row_of(K + row)),
          .qw_stride = row_of(K + row),
          .kt = take(K * row),
          .kt_stride = row};
}

template <class T>
BackwardScratch<T> Plan<T>::take_backward_scratch(Workspace& workspace) const {
  const Index row = pair_row(C), P = padded(K), R = row_of(K);
  const auto take = [&](Index count) { return workspace.take<T>(count); };
  return {.keys = take(C * R),
          .vt = take(V * row),
          .y = take(C * V),
          .p = take(C * row),
          .back_t = take(V * R),
          .grad_q = take(C * R),
          .grad_k = take(C * R),
          .nowhere = take(std::max(P, round_up(V, kPad))),
          .from_state = take(blocks_of(C) * R),
          .over = take(P),
          .passing = take(P),
          .grad_bonus = take(P)};
}

template struct Plan<float>;
template struct Plan<double>;
template Plan<float> make_plan(const ChannelDecayInputs<float>&, const ChannelDecayOptions&, Form, bool, Workspace&);
template Plan<double> make_plan(const ChannelDecayInputs<double>&, const ChannelDecayOptions&, Form, bool, Workspace&);

}  // namespace isomer::channel_decay_detail

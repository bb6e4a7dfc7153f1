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
  const double scale = options.scale.value_or(1 / std::sqrt(double(K)));
  const bool before = options.read == ChannelDecayOptions::Read::before, whole = form == Form::parallel;
  const auto chosen = [&](Index heads) { return best_chunk(costs_of(taped, heads), K, V); };
  Plan<T> plan{cut_heads("channel_decay", in, options.chunk, whole, chosen), in, scale, before, !whole, nullptr, 0};
  for (View<const T, 4>* x : {&plan.in.q, &plan.in.k, &plan.in.v, &plan.in.log_decay}) *x = dense_rows(*x, scratch);
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
  return {tokens_of_head(in, n, h, c), rows(in.log_decay, n, h, c), c == 0 && !in.initial_state.present()};
}

template <class T>
void Plan<T>::add_prefetch(PrefetchList<T>& all, Index n, Index h, Index c, Columns columns) const {
  if (c < 0 || c >= chunks(n)) return;
  const Tokens<T> x = only(columns, tokens(n, h, c));
  for (const Rows<const T>& rows : {x.log_decay, x.k}) all.add(rows.data, rows.stride, K, x.C);
  all.add(x.v.data, x.v.stride, x.V, x.C);
  all.add(x.q.data, x.q.stride, K, x.C);
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

#include "isomer/laws/delta/delta_plan.h"

#include <algorithm>
#include <cmath>

#include "isomer/laws/planner.h"

namespace isomer::delta_detail {

namespace {

// Costs of the planner's model (`isomer bench --explain`). Tiles of matrix products have 6 rows, and a chunk of 24 with K = V =
// 64 works on 60 KiB forward and 180 KiB backward of a 512 KiB L2, beside the states of its neighbours. Longer chunks lose more
// to the matrix products between their tokens than they save on the state; a tape, which keeps a state for each chunk, does not
// change that. Backward, the low-rank rule has twice as many pairs: three tiles of tokens were the fastest of a sweep from 12
// to 36.
constexpr ChunkCosts kCosts{.pair = 2, .state = 6, .edge = 24, .step = 12};
constexpr Index kTapedLowRank = 18;
constexpr ChunkCosts kLowRank{.pair = 4, .state = 8, .edge = 80, .step = 14.5};
// Two writes a token make the matrix products between tokens twice as large. Counted in writes, of which a chunk should have as
// many as one of the other rule has tokens, but for the edge that each chunk has.
constexpr ChunkCosts kWrites{.pair = 2, .state = 8, .edge = 54, .step = 12};

Index chunk_of(bool low_rank, bool taped, Index K, Index V) {
  if (low_rank && taped) return kTapedLowRank;
  return low_rank ? best_chunk(kWrites, K, V) / 2 : best_chunk(kCosts, K, V);
}

}  // namespace

Choice choose(bool low_rank, bool taped, Index T, Index K, Index V) {
  const Choice choice = best_form(low_rank ? kLowRank : kCosts, T, K, V, {.tape = taped});
  return choice.form == Form::step ? choice : Choice{Form::chunk, chunk_of(low_rank, taped, K, V)};
}

template <class T>
Tokens<T> Plan<T>::tokens(Index n, Index h, Index c) const {
  const auto at = [&](const auto& x) { return rows(x, n, h, c); };
  return {tokens_of_head(in, n, h, c), at(in.a), at(in.b), at(in.beta),
          rule.gate == Gate::key ? at(in.key_log_decay) : at(in.log_decay)};
}

template <class T>
Index Plan<T>::longest() const {
  Index most = 0;
  for (Index n = 0; n < Index(sequences.size()); ++n) most = std::max(most, chunks(n));
  return most;
}

template <class T>
void Plan<T>::add_prefetch(PrefetchList<T>& all, Index n, Index h, Index c, Columns columns) const {
  if (c < 0 || c >= chunks(n)) return;
  const Tokens<T> x = only(columns, tokens(n, h, c));
  for (const Rows<const T>& rows : {x.q, x.k, x.a, x.b}) all.add(rows.data, rows.stride, K, x.C);
  all.add(x.v.data, x.v.stride, x.V, x.C);
  if (rule.gate == Gate::key) all.add(x.log_decay.data, x.log_decay.stride, K, x.C);
}

template <class T>
Plan<T> make_plan(const DeltaInputs<T>& in, const DeltaOptions& options, bool taped, Workspace& scratch) {
  const bool low_rank = in.a.present();
  const Index K = in.q.shape[3], V = in.v.shape[3];
  const Gate gate = in.key_log_decay.present() ? Gate::key : in.log_decay.present() ? Gate::head : Gate::none;
  Plan<T> plan{
      cut_heads("delta", in, options.chunk, false, [&](Index) { return chunk_of(low_rank, taped, K, V); }),
      in,
      {.gate = gate, .low_rank = low_rank, .l2norm = options.l2norm, .scale = options.scale.value_or(1 / std::sqrt(double(K)))}};
  for (View<const T, 4>* x : {&plan.in.q, &plan.in.k, &plan.in.v, &plan.in.key_log_decay, &plan.in.a, &plan.in.b})
    *x = dense_rows(*x, scratch);
  return plan;
}

template <class T>
Matrices<T> Plan<T>::take_matrices(Workspace& workspace) const {
  const Index reader = K + round_up(N(), kPad) + kPad, row = round_up(C, kPad) + kPad;
  const Index gates = rule.gate == Gate::key ? C * K + kPad : row;
  const auto take = [&](Index count) { return workspace.take<T>(count); };
  T* readers = take(2 * C * reader);
  return {.x = readers,
          .q = readers + reader,
          .stride = 2 * reader,
          .w = take(N() * K + kPad),
          .carry = take(K + kPad),
          .up = take(gates),
          .down = take(gates),
          .entry = take(gates),
          .norm_q = take(row),
          .norm_k = take(row),
          .beta = take(row),
          .scale_x = take(row),
          .scale_q = take(row),
          .scale_w = take(row),
          .first = workspace.take<Index>(C + 1),
          .segments = workspace.take<Index>(1),
          .from_edge = workspace.take<Index>(1)};
}

template <class T>
LoadScratch<T> Plan<T>::take_load_scratch(Workspace& workspace) const {
  const Index stride = round_up(N(), kPad) + kPad;
  const auto take = [&](Index count) { return workspace.take<T>(count); };
  return {.wt = take(K * stride),
          .stride = stride,
          .from = take(K + kPad),
          .sum = take(K + kPad),
          .rest = take(K + kPad),
          .before = take(V + kPad)};
}

template <class T>
BackwardScratch<T> Plan<T>::take_backward_scratch(Workspace& workspace) const {
  const auto take = [&](Index count) { return workspace.take<T>(count + kPad); };
  const Index stride = round_up(N(), kPad);
  return {.grads = take(2 * C * V),
          .grad_z = take(N() * V),
          .keep = take(N()),
          .own = take(2 * N()),
          .back = take(K * V),
          .back_t = take(V * K),
          .z_t = take(V * stride),
          .pairs = take(2 * C * stride),
          .stride = stride,
          .reads = take(2 * C * K),
          .write = take(N() * K),
          .seg_q = take(C * K),
          .seg_x = take(C * K),
          .seg_w = take(N() * K),
          .gate_gradient = take(K),
          .row = take(2 * K)};
}

template struct Plan<float>;
template struct Plan<double>;
template Plan<float> make_plan(const DeltaInputs<float>&, const DeltaOptions&, bool, Workspace&);
template Plan<double> make_plan(const DeltaInputs<double>&, const DeltaOptions&, bool, Workspace&);

}  // namespace isomer::delta_detail

#include "isomer/laws/scalar_decay/scalar_decay_plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "isomer/laws/scalar_decay/scalar_decay_reference.h"

namespace isomer::scalar_decay_detail {

namespace {

using Normaliser = ScalarDecayOptions::Normaliser;

// Costs of the planner's model; `edge` was fitted to the best chunk of a sweep (`isomer bench --explain`). A chunk of 24 with
// K = V = 64 works on 60 KiB forward, one of 36 on 150 KiB backward, of a 512 KiB L2.
constexpr ChunkCosts kForward{.pair = 1, .state = 4, .edge = 18, .step = 10};
// A tape keeps a state for each chunk: with K = V = 64, one for 36 tokens is somewhat smaller than their q and k.
constexpr ChunkCosts kTaped{.pair = 3.5, .state = 12, .edge = 115, .step = 0};
// Chunks side by side, backward and those that do not walk, write and read a state each.
constexpr ChunkCosts kSplit{.pair = 1, .state = 4, .edge = 128, .step = 10};
// Without weights between tokens only the traffic of the state counts.
constexpr Index kGlobalChunk = 128;

const ChunkCosts& costs_of(const ScalarDecayOptions& options, bool taped, Index heads) {
  const bool split = heads < kSplitHeads && (taped || options.normaliser == Normaliser::subtract);
  return split ? kSplit : taped ? kTaped : kForward;
}

Rule rule_of(const ScalarDecayOptions& options, bool gates, Index K) {
  const Normaliser n = options.normaliser;
  return {.causal = options.direction == ScalarDecayOptions::Direction::causal,
          .divides = n == Normaliser::sum || n == Normaliser::max,
          .stabilised = n == Normaliser::max,
          .centred = n == Normaliser::subtract,
          .gated = gates || n == Normaliser::max,
          .scale = options.scale.value_or(1 / std::sqrt(double(K))),
          .eps = options.eps};
}

// to[i] = from[i] or 0.
template <class T>
void fetch(const T* from, Index stride, T* to, Index count) {
  for (Index i = 0; i < count; ++i) to[i] = from ? from[i * stride] : T(0);
}
template <class T>
void store(const T* from, T* to, Index stride, Index count) {
  for (Index i = 0; to && i < count; ++i) to[i * stride] = from[i];
}

template <class T>
bool any_sums(const ScalarDecayStates<T>& of) {
  return of.state.present() || of.norm.present() || of.value_sum.present();
}

// The sums of a head into an edge whose state has some columns, and back.
template <class T>
void fetch_sums(const ScalarDecayStates<const T>& from, const HeadColumns& at, Index K, Index V, const Edge<T>& edge) {
  if (edge.state) fetch_state(from.state, at, K, edge.state);
  fetch(from.norm.present() ? from.norm.at(at.n, at.h) : nullptr, from.norm.stride[2], edge.norm, K);
  fetch(from.value_sum.present() ? from.value_sum.at(at.n, at.h) : nullptr, from.value_sum.stride[2], edge.value_sum, V);
}
template <class T>
void store_sums(const Edge<T>& edge, const HeadColumns& at, Index K, Index V, const ScalarDecayStates<T>& to) {
  store_state(edge.state, K, to.state, at);
  if (at.columns.begin > 0) return;
  if (to.norm.present()) store(edge.norm, to.norm.at(at.n, at.h), to.norm.stride[2], K);
  if (to.value_sum.present()) store(edge.value_sum, to.value_sum.at(at.n, at.h), to.value_sum.stride[2], V);
}

// Σ(k − a)(v − b)ᵀ, Σ(k − a), Σ(v − b) over `count` tokens -> the same about a + sign·key_mean, b + sign·value_mean.
template <class T>
void shift_sums(const Edge<T>& e, double sign, double count, Index K, Index V) {
  for (Index a = 0; a < K; ++a) {
    const double k = sign * e.key_mean[a];
    for (Index c = 0; c < V; ++c) {
      const double v = sign * e.value_mean[c];
      e.state[a * V + c] = T(e.state[a * V + c] - k * e.value_sum[c] - e.norm[a] * v + count * k * v);
    }
  }
  for (Index a = 0; a < K; ++a) e.norm[a] = T(e.norm[a] - count * sign * e.key_mean[a]);
  for (Index c = 0; c < V; ++c) e.value_sum[c] = T(e.value_sum[c] - count * sign * e.value_mean[c]);
}

// Gradients of sums about one point are those about another, moved by sign · (the means of `about`).
template <class T>
void shift_gradient(const Edge<T>& e, const Edge<T>& about, double sign, Index K, Index V) {
  for (Index a = 0; a < K; ++a) {
    double sum = e.norm[a];
    for (Index c = 0; c < V; ++c) sum += sign * double(e.state[a * V + c]) * about.value_mean[c];
    e.norm[a] = T(sum);
  }
  for (Index c = 0; c < V; ++c) {
    double sum = e.value_sum[c];
    for (Index a = 0; a < K; ++a) sum += sign * double(e.state[a * V + c]) * about.key_mean[a];
    e.value_sum[c] = T(sum);
  }
}

}  // namespace

Choice choose(const ScalarDecayOptions& options, Carries carries, Index heads, Index T, Index K, Index V) {
  if (options.direction == ScalarDecayOptions::Direction::global) return {Form::chunk, kGlobalChunk};
  return best_form(costs_of(options, carries.tape, heads), T, K, V, carries);
}

template <class T>
Tokens<T> Plan<T>::tokens(Index n, Index h, Index c) const {
  return {tokens_of_head(in, n, h, c),
          rows(in.log_decay, n, h, c),
          rows(in.log_input, n, h, c),
          initial_count(n) + double(c * C),
          c == 0,
          c == 0 && !any_sums(in.initial)};
}

template <class T>
void Plan<T>::add_prefetch(PrefetchList<T>& all, Index n, Index h, Index c, Columns columns) const {
  if (c < 0 || c >= chunks(n)) return;
  const Tokens<T> x = only(columns, tokens(n, h, c));
  for (const Rows<const T>& rows : {x.q, x.k}) all.add(rows.data, rows.stride, K, x.C);
  all.add(x.v.data, x.v.stride, x.V, x.C);
}

template <class T>
Plan<T> make_plan(const ScalarDecayInputs<T>& in, const ScalarDecayOptions& options, Form form, bool taped, Workspace& scratch) {
  const Rule rule = rule_of(options, in.log_decay.present() || in.log_input.present(), in.q.shape[3]);
  const Index K = in.q.shape[3], V = in.v.shape[3];
  const auto chosen = [&](Index heads) { return rule.causal ? best_chunk(costs_of(options, taped, heads), K, V) : kGlobalChunk; };
  // Without causality no token meets another: one chunk would only make the sums longer.
  const bool whole = form == Form::parallel && rule.causal, walks = rule.causal && !rule.centred && !whole;
  Plan<T> plan{cut_heads("scalar_decay", in, options.chunk, whole, chosen), in, options, rule, walks};
  for (View<const T, 4>* x : {&plan.in.q, &plan.in.k, &plan.in.v}) *x = dense_rows(*x, scratch);
  // Every slice of a head reads these, and the first one writes what becomes of them, perhaps to the same memory.
  if (walks && form == Form::chunk) {
    plan.in.initial.norm = copy_of(in.initial.norm, scratch);
    plan.in.initial.max = copy_of(in.initial.max, scratch);
  }
  return plan;
}

template <class T>
Scratch<T> Plan<T>::take_scratch(Workspace& workspace) const {
  const Index row = round_up(C, kPad) + kPad;
  Scratch<T> s{};
  s.qw_stride = K + (rule.causal ? row : kPad);
  s.qw = workspace.take<T>(C * s.qw_stride);
  s.kt_stride = row;
  s.kt = workspace.take<T>(K * row);
  s.sums_k = workspace.take<T>(K);
  s.sums_v = workspace.take<T>(V);
  s.inverse = workspace.take<T>(row);
  s.shift = workspace.take<T>(row);
  Gates<T>& g = s.gates;
  for (double** p : {&g.row, &g.column, &g.in, &g.out, &g.floor, &g.row_rest, &g.column_rest}) *p = workspace.take<double>(row);
  for (T** p : {&g.row_hi, &g.row_lo, &g.column_hi, &g.column_lo, &g.from_state, &g.to_state, &g.one, &g.at_edge,
                &g.from_state_lo, &g.at_edge_lo})
    *p = workspace.take<T>(row);
  g.begin = workspace.take<Index>(row);
  g.factored = workspace.take<Index>(1);
  g.gradual = workspace.take<Index>(1);
  g.carry = workspace.take<T>(1);
  g.rescale = workspace.take<T>(1);
  g.max = workspace.take<double>(1);
  return beside(s, workspace);
}

template <class T>
Scratch<T> Plan<T>::beside(const Scratch<T>& s, Workspace& workspace) const {
  Scratch<T> own = s;
  own.sv = workspace.take<T>((K + C) * V + kPad);
  own.around = workspace.take<T>(edge_size() - K * V);
  return own;
}

template <class T>
BackwardScratch<T> Plan<T>::take_backward_scratch(Workspace& workspace) const {
  const Index row = round_up(C, kPad) + kPad;
  const Index square = rule.causal ? C * row : 0;
  const auto take = [&](Index count) { return workspace.take<T>(count); };
  const auto doubles = [&](Index count) { return workspace.take<double>(count); };
  return {.k = take(C * K),
          .vt = take(V * row),
          .y = take(C * V),
          .back_t = take(V * K),
          .p = take(square),
          .decay = take(square),
          .grad_q = take(C * K),
          .grad_k = take(C * K),
          .grad_v = take(C * V),
          .through = take(C * K),
          .delta = take(row),
          .along_norm = take(row),
          .columns = take(row),
          .shift_k = take(K),
          .shift_v = take(V),
          .from_state = doubles(row),
          .inner = doubles(row),
          .to_state = doubles(row),
          .between = doubles(row),
          .kept = doubles(1)};
}

template <class T>
Edge<T> Plan<T>::scratch_edge(const Scratch<T>& s) const {
  return {s.sv, s.around, s.around + K, s.around + K + V, s.around + 2 * K + V, s.around + 2 * K + 2 * V};
}

template <class T>
void Plan<T>::copy_edge(const Edge<T>& from, const Edge<T>& to, Columns columns) const {
  put_columns(from.state, columns, K, to.state, V);
  if (columns.begin == 0) std::memcpy(to.norm, from.norm, std::size_t(2 * (K + V) + 1) * sizeof(T));
}

template <class T>
void Plan<T>::fetch_states(const HeadColumns& at, const Edge<T>& edge) const {
  const auto& from = in.initial;
  fetch_sums(from, at, K, V, edge);
  const bool nothing = !from.state.present() && !from.norm.present() && !from.max.present();
  *edge.max = from.max.present() ? from.max(at.n, at.h) : nothing ? T(kNothing) : T(0);
  std::fill_n(edge.key_mean, K, T(0));
  std::fill_n(edge.value_mean, V, T(0));
}

template <class T>
void Plan<T>::enter(const HeadColumns& at, const Edge<T>& edge) const {
  fetch_states(at, edge);
  if (!rule.centred || sequences[at.n].length == 0) return;
  const double count = initial_count(at.n);
  if (count != 0) {
    for (Index a = 0; a < K; ++a) edge.key_mean[a] = T(edge.norm[a] / count);
    for (Index c = 0; c < V; ++c) edge.value_mean[c] = T(edge.value_sum[c] / count);
  } else {
    const Tokens<T> x = tokens(at.n, at.h, 0);
    std::copy_n(x.k.data, K, edge.key_mean);
    std::copy_n(x.v.data, V, edge.value_mean);
  }
  // Sums of nothing are the same about any point.
  if (count != 0 || any_sums(in.initial)) shift_sums(edge, 1.0, count, K, V);
}

template <class T>
void Plan<T>::store_states(const Edge<T>& edge, const HeadColumns& at, const ScalarDecayStates<T>& to) const {
  if (to.max.present() && at.columns.begin == 0) to.max(at.n, at.h) = *edge.max;
  store_sums(edge, at, K, V, to);
}

template <class T>
void Plan<T>::leave(const Edge<T>& edge, const HeadColumns& at, const ScalarDecayStates<T>& to) const {
  if (rule.centred) shift_sums(edge, -1.0, initial_count(at.n) + double(sequences[at.n].length), K, V);
  store_states(edge, at, to);
}

template <class T>
void Plan<T>::enter_gradient(const HeadColumns& at, const ScalarDecayStates<const T>& from, const Edge<T>& about,
                             const Edge<T>& edge) const {
  fetch_sums(from, at, K, V, edge);
  if (rule.centred && any_sums(from)) shift_gradient(edge, about, 1.0, K, V);
}

template <class T>
void Plan<T>::leave_gradient(const Edge<T>& edge, const HeadColumns& at, const Edge<T>& about,
                             const ScalarDecayStates<T>& to) const {
  if (rule.centred && any_sums(to)) shift_gradient(edge, about, -1.0, K, V);
  store_sums(edge, at, K, V, to);
}

template struct Plan<float>;
template struct Plan<double>;
template Plan<float> make_plan(const ScalarDecayInputs<float>&, const ScalarDecayOptions&, Form, bool, Workspace&);
template Plan<double> make_plan(const ScalarDecayInputs<double>&, const ScalarDecayOptions&, Form, bool, Workspace&);

}  // namespace isomer::scalar_decay_detail

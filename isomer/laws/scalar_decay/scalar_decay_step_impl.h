#pragma once
// The step form: a token at a time, one pass over the state for each. For the translation units of one Isa.
#include "isomer/laws/scalar_decay/scalar_decay_chunk_impl.h"

namespace isomer::scalar_decay_detail {

/// Columns [c, c + vectors·lanes) of the state: S = keep·S + k vᵀ and o = Sᵀq, of `subtract` o = (S − norm·meanᵀ)ᵀq.
template <class T, Isa I, int vectors, bool centred>
void step_columns(const Edge<T>& edge, const StepState<T>& s, T keep, Index K, Index c, Index width, T* o) noexcept {
  using V = simd::Vec<T, I>;
  const auto left = [&](int i) { return width - i * V::lanes; };
  V v[vectors], mean[vectors], out[vectors];
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i) {
    v[i] = V::load(s.v + c + i * V::lanes, left(i));
    mean[i] = centred ? V::load(s.mean + c + i * V::lanes, left(i)) : V::zero();
    out[i] = V::zero();
  }
  const V f = V::set(keep);
  const T* from = s.from.data + c;
  T* to = s.to.data + c;
  for (Index a = 0; a < K; ++a) {
    const V q = V::set(s.q[a]), k = V::set(s.k[a]), norm = V::set(centred ? edge.norm[a] : T(0));
#pragma GCC unroll 4
    for (int i = 0; i < vectors; ++i) {
      const V state = fma(k, v[i], f * V::load(from + i * V::lanes, left(i)));
      state.store(to + i * V::lanes, left(i));
      out[i] = fma(q, centred ? fnma(norm, mean[i], state) : state, out[i]);
    }
    from += s.from.stride;
    to += s.to.stride;
  }
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i) out[i].store(o + c + i * V::lanes, left(i));
}

template <class T, Isa I, bool centred>
void step_state(const Edge<T>& edge, const StepState<T>& s, T keep, Index K, Index width, T* o) noexcept {
  // Four vectors of v and four of o stay in registers, which hides the latency of the sums.
  constexpr Index lanes = simd::Vec<T, I>::lanes;
  Index c = 0;
  for (; c + 4 * lanes <= width; c += 4 * lanes) step_columns<T, I, 4, centred>(edge, s, keep, K, c, 4 * lanes, o);
  for (; c < width; c += lanes) step_columns<T, I, 1, centred>(edge, s, keep, K, c, width - c, o);
}

// So many tokens keep their sums about the means of those before them, as a chunk does: a pass over the state in 32 is little.
constexpr Index kTokensAboutMeans = 32;

/// Moves the sums of `subtract` about the means of the n tokens that they are of.
template <class T, Isa I>
void recentre_step(const Edge<T>& edge, Rows<T> state, double n, Index K, Index V) noexcept {
  const T per = T(1 / n);
  move_state<T, I>(per, edge.norm, edge.value_sum, state, K, V);
  scaled<T, I, true>(per, edge.norm, edge.key_mean, K);
  scaled<T, I, true>(per, edge.value_sum, edge.value_mean, V);
  scaled<T, I>(T(0), edge.norm, edge.norm, K);
  scaled<T, I>(T(0), edge.value_sum, edge.value_sum, V);
}

/// One token of `subtract`: sums about the means of the edge, which stay where they are.
template <class T, Isa I>
void step_centred(const Tokens<T>& x, const Edge<T>& edge, const StepState<T>& s, Index t, T* o) noexcept {
  const T n = T(x.count + double(t + 1)), per = T(1) / n;
  for (Index a = 0; a < x.K; ++a) {
    s.k[a] = x.k.data[t * x.k.stride + a] - edge.key_mean[a];
    edge.norm[a] += s.k[a];
  }
  for (Index c = 0; c < x.V; ++c) {
    s.v[c] = x.v.data[t * x.v.stride + c] - edge.value_mean[c];
    edge.value_sum[c] += s.v[c];
    s.mean[c] = edge.value_sum[c] * per;
  }
  step_state<T, I, true>(edge, s, T(1), x.K, x.V, o);
  for (Index c = 0; c < x.V; ++c) o[c] = edge.value_mean[c] + s.mean[c] + per * o[c];
}

/// One token of the other normalisers.
template <class T, Isa I>
void step_gated(const Tokens<T>& x, const Rule& rule, const Edge<T>& edge, const StepState<T>& s, Index t, T* o) noexcept {
  double keep = x.log_decay.data ? double(x.log_decay.data[t * x.log_decay.stride]) : 0.0;
  double add = x.log_input.data ? double(x.log_input.data[t * x.log_input.stride]) : 0.0;
  if (rule.stabilised) {
    const double old = double(*edge.max) + keep;
    *edge.max = T(old > add ? old : add);
    keep = old - double(*edge.max);
    add -= double(*edge.max);
  }
  const T f = keep == 0 ? T(1) : T(::exp(keep)), i = add == 0 ? T(1) : T(::exp(add));
  scaled<T, I>(i, x.k.data + t * x.k.stride, s.k, x.K);
  scaled<T, I>(T(1), x.v.data + t * x.v.stride, s.v, x.V);
  step_state<T, I, false>(edge, s, f, x.K, x.V, o);
  if (!rule.divides) return;
  scaled<T, I>(f, edge.norm, edge.norm, x.K);
  scaled<T, I, true>(T(1), s.k, edge.norm, x.K);
  constexpr double largest = sizeof(T) == 4 ? 88 : 709;
  const double floor = -double(*edge.max);
  const T one = rule.stabilised ? T(::exp(floor < largest ? floor : largest)) : T(1);
  scaled<T, I>(inverse_divisor(rule, dot<T, I>(s.q, edge.norm, x.K), one), o, o, x.V);
}

template <class T, Isa I>
void Kernels<T, I>::step(const Tokens<T>& x, const Rule& rule, const Edge<T>& edge, const StepState<T>& s, Rows<T> o) noexcept {
  StepState<T> state = s;
  for (Index t = 0; t < x.C; ++t) {
    scaled<T, I>(T(rule.scale), x.q.data + t * x.q.stride, s.q, x.K);
    T* row = o.data + t * o.stride;
    if (rule.centred)
      step_centred<T, I>(x, edge, state, t, row);
    else
      step_gated<T, I>(x, rule, edge, state, t, row);
    state.from = {state.to.data, state.to.stride};
    // A single token has its sums about nothing, which is where they stay.
    if (rule.centred && x.C > 1 && (t + 1) % kTokensAboutMeans == 0)
      recentre_step<T, I>(edge, state.to, x.count + double(t + 1), x.K, x.V);
  }
}

}  // namespace isomer::scalar_decay_detail

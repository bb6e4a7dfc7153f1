#pragma once
// The step form: a token at a time, one pass over the state for each. For the translation units of one Isa.
#include "isomer/laws/delta/delta_load_impl.h"

namespace isomer::delta_detail {

/// One token's numbers beside those in StepState: o = q S + in_u · u + in_v · v.
template <class T>
struct StepToken {
  const T* v;
  T beta, in_u, in_v;
};

/// Columns [c, c + vectors·lanes): they are read and written again before they have left L1.
template <class T, Isa I, int vectors, bool cut, bool low_rank>
void step_columns(const StepState<T>& s, const StepToken<T>& t, Index K, Index c, Index width, T* o) noexcept {
  using V = simd::Vec<T, I>;
  const auto left = [&](int i) { return cut ? width - i * V::lanes : V::lanes; };
  V u[vectors], out[vectors], v[vectors];
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i) {
    v[i] = V::load(t.v + c + i * V::lanes, left(i));
    u[i] = low_rank ? V::zero() : V::set(t.beta) * v[i];
    out[i] = V::zero();
  }
  const T* from = s.from.data + c;
  for (Index a = 0; a < K; ++a, from += s.from.stride) {
    const V q = V::set(s.q[a]), x = V::set(s.x[a]);
#pragma GCC unroll 4
    for (int i = 0; i < vectors; ++i) {
      const V state = V::load(from + i * V::lanes, left(i));
      u[i] = fma(x, state, u[i]);
      out[i] = fma(q, state, out[i]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i) {
    out[i] = fma(V::set(t.in_u), u[i], out[i]);
    if (low_rank) out[i] = fma(V::set(t.in_v), v[i], out[i]);
    out[i].store(o + c + i * V::lanes, left(i));
  }
  from = s.from.data + c;
  T* to = s.to.data + c;
  for (Index a = 0; a < K; ++a, from += s.from.stride, to += s.to.stride) {
    const V keep = V::set(s.keep[a]), k = V::set(s.k[a]), b = low_rank ? V::set(s.b[a]) : V::zero();
#pragma GCC unroll 4
    for (int i = 0; i < vectors; ++i) {
      V state = keep * V::load(from + i * V::lanes, left(i));
      state = low_rank ? fma(b, u[i], fma(k, v[i], state)) : fma(k, u[i], state);
      state.store(to + i * V::lanes, left(i));
    }
  }
}

template <class T, Isa I, bool low_rank>
void step_state(const StepState<T>& s, const StepToken<T>& t, Index K, Index width, T* o) noexcept {
  constexpr Index lanes = simd::Vec<T, I>::lanes;
  Index c = 0;
  for (; c + 4 * lanes <= width; c += 4 * lanes) step_columns<T, I, 4, false, low_rank>(s, t, K, c, 4 * lanes, o);
  for (; c < width; c += lanes) step_columns<T, I, 1, true, low_rank>(s, t, K, c, width - c, o);
}

template <class T, Isa I>
void Kernels<T, I>::step(const Tokens<T>& x, const Rule& rule, const StepState<T>& s, Rows<T> o) noexcept {
  using V = simd::Vec<T, I>;
  const Index K = x.K;
  StepState<T> state = s;
  for (Index i = 0; i < x.C; ++i) {
    const T *q = x.q.data + i * x.q.stride, *k = x.k.data + i * x.k.stride;
    const T sq = T(rule.scale) * inverse_norm<T, I>(rule, q, K);
    StepToken<T> token{x.v.data + i * x.v.stride, x.beta.data ? x.beta.data[i * x.beta.stride] : T(1), 0, 0};
    scaled<T, I>(sq, q, s.q, K);
    scaled<T, I>(inverse_norm<T, I>(rule, k, K), k, s.k, K);
    const T* writer = s.k;
    if (rule.low_rank) {
      copy_row<T, I>(x.b.data + i * x.b.stride, nullptr, s.b, K);
      token.in_v = dot<T, I>(s.q, s.k, K);
      writer = s.b;
    }
    token.in_u = dot<T, I>(s.q, writer, K);
    const T* gates = x.log_decay.data + i * x.log_decay.stride;
    if (rule.gate == Gate::key) {
      each_vector<V>(K, [&](Index c, Index n) { exp(V::load(gates + c, n)).store(s.keep + c, n); });
    } else {
      const T keep = rule.gate == Gate::head ? T(::exp(double(*gates))) : T(1);
      for (Index a = 0; a < K; ++a) s.keep[a] = keep;
    }
    times<T, I>(s.keep, s.q, s.q, K);
    if (rule.low_rank)
      copy_row<T, I>(x.a.data + i * x.a.stride, nullptr, s.x, K);
    else
      times<T, I>(-token.beta, s.keep, s.k, s.x, K);
    T* row = o.data + i * o.stride;
    if (rule.low_rank)
      step_state<T, I, true>(state, token, K, x.V, row);
    else
      step_state<T, I, false>(state, token, K, x.V, row);
    state.from = {state.to.data, state.to.stride};
  }
}

}  // namespace isomer::delta_detail

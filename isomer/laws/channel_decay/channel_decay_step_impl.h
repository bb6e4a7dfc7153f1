#pragma once
// The step form: a token at a time, one pass over the state for each. For the translation units of one Isa.
#include "isomer/laws/channel_decay/channel_decay_chunk_impl.h"

namespace isomer::channel_decay_detail {

/// Columns [c, c + vectors·lanes) of the state: S = Diag(decay) S + k vᵀ, and o = Sᵀq of the new or of the old state; `own` is
/// the weight of v itself in the output that reads the old one.
template <class T, Isa I, int vectors, bool before>
void step_columns(const StepState<T>& s, const T* v, T own, Index K, Index c, Index width, T* o) noexcept {
  using V = simd::Vec<T, I>;
  // Only a single vector may be cut.
  const Index left = vectors == 1 ? width : V::lanes;
  V value[vectors], out[vectors];
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i) {
    value[i] = V::load(v + c + i * V::lanes, left);
    out[i] = before ? V::set(own) * value[i] : V::zero();
  }
  const T *from = s.from.data + c, *queries = s.q, *keys = s.k, *decays = s.decay;
  T* to = s.to.data + c;
  for (Index a = 0; a < K; ++a) {
    const V q = V::set(queries[a]), k = V::set(keys[a]), f = V::set(decays[a]);
#pragma GCC unroll 4
    for (int i = 0; i < vectors; ++i) {
      const V old = V::load(from + i * V::lanes, left), now = fma(k, value[i], f * old);
      now.store(to + i * V::lanes, left);
      out[i] = fma(q, before ? old : now, out[i]);
    }
    from += s.from.stride;
    to += s.to.stride;
  }
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i) out[i].store(o + c + i * V::lanes, left);
}

template <class T, Isa I, bool before>
void step_state(const StepState<T>& s, const T* v, T own, Index K, Index width, T* o) noexcept {
  // Four vectors of v and four of o stay in registers, which hides the latency of the sums.
  constexpr Index lanes = simd::Vec<T, I>::lanes;
  Index c = 0;
  for (; c + 4 * lanes <= width; c += 4 * lanes) step_columns<T, I, 4, before>(s, v, own, K, c, 4 * lanes, o);
  for (; c < width; c += lanes) step_columns<T, I, 1, before>(s, v, own, K, c, width - c, o);
}

template <class T, Isa I>
void Kernels<T, I>::step(const Tokens<T>& x, const Rule<T>& rule, const StepState<T>& s, Rows<T> o) noexcept {
  using V = simd::Vec<T, I>;
  StepState<T> state = s;
  const V scale = V::set(T(rule.scale));
  for (Index t = 0; t < x.C; ++t) {
    const T *q = x.q.data + t * x.q.stride, *k = x.k.data + t * x.k.stride, *f = x.log_decay.data + t * x.log_decay.stride;
    V own = V::zero();
    each_vector<V>(x.K, [&](Index c, Index n) {
      const V y = scale * V::load(q + c, n), key = V::load(k + c, n);
      y.store(s.q + c);
      key.store(s.k + c);
      exp(V::load(f + c, n)).store(s.decay + c);
      if (rule.before) own = fma(y * key, V::load(rule.bonus + c), own);
    });
    const T* v = x.v.data + t * x.v.stride;
    T* row = o.data + t * o.stride;
    if (rule.before)
      step_state<T, I, true>(state, v, sum(own), x.K, x.V, row);
    else
      step_state<T, I, false>(state, v, T(0), x.K, x.V, row);
    state.from = {state.to.data, state.to.stride};
  }
}

}  // namespace isomer::channel_decay_detail

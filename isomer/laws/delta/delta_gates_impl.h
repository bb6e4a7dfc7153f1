#pragma once
// The gradients of gates: see README.md. For the translation units of one Isa.
#include "isomer/laws/delta/delta_segments_impl.h"

namespace isomer::delta_detail {

/// e^x is 0 in double below this: a decay that forgets everything, like −inf.
inline constexpr double kForgets = -750;

/// One token of finish(): where its readers, its writers and their gradients are.
template <class T>
struct Token {
  const T *q, *x, *w;
  const T *read_q, *read_x, *write;
  const T *up, *up_x, *down;
};

/// Gates of keys: what token i adds to what passes through them, and the gradient of its own. The gradients of its readers and
/// writers are still without the pairs that no gate stands between.
template <class T, Isa I>
void gate_row(const Tokens<T>& x, const Rule& rule, const Token<T>& t, const BackwardScratch<T>& b, Index i,
              const BackwardRows<T>& io) noexcept {
  using V = simd::Vec<T, I>;
  const Index K = x.K;
  // Nothing of the chunk reads what the last token writes, and what goes on passes through no gate of it.
  const bool writes = i + 1 < x.C;
  const T* gates = x.log_decay.data + i * x.log_decay.stride;
  T* grad = io.log_decay.data ? io.log_decay.data + i * io.log_decay.stride : b.row;
  const V lowest = V::set(T(kForgets));
  each_vector<V>(K, [&](Index c, Index n) {
    const auto at = [&](const T* p) { return V::load(p + c, n); };
    V f = fma(at(t.q), at(t.read_q), at(b.gate_gradient));
    if (writes) f = fnma(at(t.w), at(t.write), f);
    if (writes && rule.low_rank) f = fnma(at(t.w + K), at(t.write + K), f);
    if (!rule.low_rank) f = fma(at(t.x), at(t.read_x), f);
    select(at(gates) < lowest, V::zero(), f).store(grad + c, n);
    if (rule.low_rank) f = fma(at(t.x), at(t.read_x), f);
    f.store(b.gate_gradient + c, n);
  });
}

/// Adds what q of token i reads of its own writes to the gradients of both, once the gates of keys are done.
template <class T, Isa I>
void add_own(const Rule& rule, const Token<T>& t, const BackwardScratch<T>& b, Index i, Index K) noexcept {
  const Index W = rule.writes();
  for (Index e = 0; e < W; ++e) {
    const T own = b.own[W * i + e];
    scaled<T, I, true>(own, t.w + e * K, b.reads + (2 * i + 1) * K, K);
    scaled<T, I, true>(own, t.q, b.write + (W * i + e) * K, K);
  }
}

/// Pairs that no gate stands between go from `pairs` to `own`: those of q with what its own token writes, and behind them, of
/// the low-rank rule, those of x with what the token before wrote.
template <class T, Isa I>
void take_own(const Rule& rule, const BackwardScratch<T>& b, Index C) noexcept {
  const Index W = rule.writes(), N = W * C;
  const auto take = [&](Index reader, Index p) {
    T& pair = b.pairs[reader * b.stride + p];
    const T taken = pair;
    pair = 0;
    return taken;
  };
  for (Index p = 0; p < N; ++p) {
    const Index i = p / W;
    b.own[p] = take(2 * i + 1, p);
    if (rule.low_rank) b.own[N + p] = i + 1 < C ? take(2 * i + 2, p) : T(0);
  }
}

/// Gradients of the gates of a head: the weights that pass through each, times their gradients. Nothing cancels, as in the
/// sum of q·dq − w·dw, so that also a decay of e^−20 has a gradient. b.reads and b.write have what the states before and after
/// the chunk give, `factors` times for writers (null: 1).
template <class T, Isa I>
void head_gates(const Tokens<T>& x, const Matrices<T>& m, const Rows<T>& w, const T* factors, const T* sz,
                const BackwardScratch<T>& b, const Rows<T>& grad) noexcept {
  using V = simd::Vec<T, I>;
  const Index K = x.K;
  T* passing = b.own;  // of the writers before the token, by all that read them from it on
  for (Index p = 0; p < x.C; ++p)
    passing[p] = (factors ? factors[p] : T(1)) * dot<T, I>(w.data + p * w.stride, b.write + p * K, K);
  double over = double(*m.carry) * double(dot<T, I>(sz, b.back_t, K * x.V));
  for (Index t = x.C; t-- > 0;) {
    const T *reads = b.reads + 2 * t * K, *dl = b.pairs + 2 * t * b.stride, *dp = dl + b.stride;
    const T *l = m.x + t * m.stride + K, *p = m.q + t * m.stride + K;
    over += double(dot<T, I>(m.x + t * m.stride, reads, K)) + double(dot<T, I>(m.q + t * m.stride, reads + K, K));
    V all = V::zero();
    each_vector<V>(t, [&](Index i, Index n) {
      V sum = fma(V::load(l + i, n), V::load(dl + i, n), V::load(passing + i, n));
      sum = fma(V::load(p + i, n), V::load(dp + i, n), sum);
      sum.store(passing + i, n);
      all = all + V::load(passing + i, n);
    });
    const bool forgets = double(x.log_decay.data[t * x.log_decay.stride]) < kForgets;
    grad.data[t * grad.stride] = forgets ? T(0) : T(over + double(sum(all)));
  }
}

/// b.gate_gradient = what of the state after the chunk has passed through the gates of its last token, key by key: all but what
/// that token wrote. b.write has the gradients of writers that this state gives.
template <class T, Isa I>
void key_gates_at_end(const Tokens<T>& x, const Matrices<T>& m, Index W, const T* sz, const BackwardScratch<T>& b) noexcept {
  using V = simd::Vec<T, I>;
  constexpr int side = 4;  // sums side by side: one would wait for its own last addition
  for (Index a = 0; a < x.K; a += side * V::lanes) {
    V sums[side];
#pragma GCC unroll 4
    for (int v = 0; v < side; ++v) sums[v] = V::zero();
    for (Index c = 0; c < x.V; ++c)
#pragma GCC unroll 4
      for (int v = 0; v < side; ++v) {
        const Index at = a + v * V::lanes, row = c * x.K + at;
        sums[v] = fma(V::load(sz + row, x.K - at), V::load(b.back_t + row, x.K - at), sums[v]);
      }
#pragma GCC unroll 4
    for (int v = 0; v < side; ++v) {
      const Index at = a + v * V::lanes;
      (V::load(m.carry + at, x.K - at) * sums[v]).store(b.gate_gradient + at, x.K - at);
    }
  }
  for (Index p = 0; p < W * (x.C - 1); ++p)
    each_vector<V>(x.K, [&](Index a, Index n) {
      const V f = V::load(b.gate_gradient + a, n);
      fma(V::load(m.w + p * x.K + a, n), V::load(b.write + p * x.K + a, n), f).store(b.gate_gradient + a, n);
    });
}

}  // namespace isomer::delta_detail

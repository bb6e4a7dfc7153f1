#pragma once
// The chunk form, backward: see README.md for the derivation. For the translation units of one Isa.
#include "isomer/laws/scalar_decay/scalar_decay_chunk_impl.h"

namespace isomer::scalar_decay_detail {

/// Do weights have decays of their own, which q and v do not carry?
template <class T>
ISOMER_INLINE bool decays_pairs(const Rule& rule, const Gates<T>& g) {
  return rule.gated && *g.factored == 0;
}

template <class T, Isa I>
void Kernels<T, I>::load_keys(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const BackwardScratch<T>& b) noexcept {
  for (Index i = 0; i < x.C; ++i)
    copy_row<T, I>(x.k.data + i * x.k.stride, rule.centred ? before.key_mean : nullptr, b.k + i * x.K, x.K);
}

/// Sums over a row of weights.
template <class T>
struct RowSums {
  T weights = 0;   // Σ w
  T products = 0;  // Σ w·(dO·v) without the decay counted twice; `subtract`: Σ dO·v
};

/// Row i: logits -> weights, dO·v -> the same with the decay, both in place, and their sums. Keeps decays and logits.
template <class T, Isa I>
RowSums<T> decay_row(const Rule& rule, const Gates<T>& g, T* w, T* p, const BackwardScratch<T>& b, Index i) noexcept {
  using V = simd::Vec<T, I>;
  const bool decays = decays_pairs(rule, g);
  const Index begin = decays ? g.begin[i] : 0, end = i + 1;
  for (Index j = 0; j < begin; ++j) w[j] = p[j] = b.decay[j] = b.logits[j] = 0;
  V weights = V::zero(), products = V::zero();
  const V hi = V::set(decays ? g.row_hi[i] : T(0)), lo = V::set(decays ? g.row_lo[i] : T(0));
  each_vector<V>(end - begin, [&](Index at, Index n) {
    const Index j = begin + at;
    const V a = V::load(w + j, n), r = V::load(p + j, n);
    V d = V::set(T(1));
    if (decays) {
      // Lanes beyond the diagonal may overflow: by way of memory they become zero.
      exp((hi + V::load(g.column_hi + j, n)) + (lo + V::load(g.column_lo + j, n))).store(b.decay + j, n);
      d = V::load(b.decay + j, n);
      a.store(b.logits + j, n);
      (r * d).store(p + j, n);
      (a * d).store(w + j, n);
    }
    products = rule.centred ? products + r : fma(a * d, r, products);
    weights = fma(a, rule.gated && !decays ? V::load(g.at_edge + j, n) : d, weights);
  });
  return {sum(weights), sum(products)};
}

/// p = inverse·p + delta·decay (null: 1) and w += shift on row i.
template <class T, Isa I>
void divide_row(const Rule& rule, T* w, T* p, const T* decay, Index i, T inverse, T delta, T shift) noexcept {
  using V = simd::Vec<T, I>;
  const V f = V::set(inverse), add = V::set(delta), up = V::set(shift);
  each_vector<V>(i + 1, [&](Index j, Index n) {
    const V d = decay ? V::load(decay + j, n) : V::set(T(1));
    fma(f, V::load(p + j, n), add * d).store(p + j, n);
    if (rule.centred) (V::load(w + j, n) + up).store(w + j, n);
  });
}

/// What the pairs of row i give to the gates: their sum over columns (`between`), and added to those over rows (`inner`).
/// Rows and columns add up the same numbers in double, so that their differences are exact.
template <class T, Isa I>
void pair_row(const BackwardScratch<T>& b, const T* logits, const T* p, Index i) noexcept {
  constexpr int lanes = 4;
  double row[lanes] = {};
  double* columns = b.inner;
  columns[i] = 0;
  Index j = 0;
  for (; j + lanes <= i + 1; j += lanes)
    for (int l = 0; l < lanes; ++l) {
      const double z = double(logits[j + l]) * double(p[j + l]);
      columns[j + l] += z;
      row[l] += z;
    }
  for (; j <= i; ++j) {
    const double z = double(logits[j]) * double(p[j]);
    columns[j] += z;
    row[0] += z;
  }
  b.between[i] = (row[0] + row[1]) + (row[2] + row[3]);
}

/// The divisor of row i and its gradient. In: grad_q = S dO, y = dO. Out: grad_q lacks what comes from the weights, y = dO /
/// divisor.
template <class T, Isa I>
void backward_row(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s, const BackwardScratch<T>& b,
                  Index i) noexcept {
  T *q = s.qw + i * s.qw_stride, *w = q + x.K, *p = b.p + i * s.kt_stride, *y = b.y + i * x.V, *grad_q = b.grad_q + i * x.K;
  RowSums<T> sums;
  const bool decays = decays_pairs(rule, s.gates);
  if (rule.causal && (decays || rule.divides || rule.centred)) sums = decay_row<T, I>(rule, s.gates, w, p, b, i);
  const T from_state = decays && rule.causal ? s.gates.from_state[i] : T(1);
  T inverse = 1, delta = 0, shift = 0;
  if (rule.divides) {
    const T den = sums.weights + (x.empty ? T(0) : from_state * dot<T, I>(q, before.norm, x.K));
    const T num = sums.products + from_state * dot<T, I>(q, grad_q, x.K);  // dO · Σ
    const T one = rule.stabilised ? s.gates.one[i] : T(1), size = den < 0 ? -den : den;
    inverse = inverse_divisor(rule, den, one);
    if (!rule.stabilised)
      delta = -num * inverse * inverse;
    else if (size > one)
      delta = (den < 0 ? num : -num) * inverse * inverse;
  } else if (rule.centred) {
    inverse = T(1 / (rule.causal ? x.count + double(i + 1) : x.count));
    if (x.first) {
      sums.weights += dot<T, I>(q, before.norm, x.K);
      sums.products += dot<T, I>(y, before.value_sum, x.V);
    }
    shift = T(1) - sums.weights * inverse;
    delta = -sums.products * inverse * inverse;
  }
  b.delta[i] = delta;
  s.shift[i] = shift;
  if (rule.causal && (rule.divides || rule.centred))
    divide_row<T, I>(rule, w, p, decays ? b.decay : rule.gated ? s.gates.at_edge : nullptr, i, inverse, delta, shift);
  for (Index j = i + 1; rule.causal && j < x.C && j <= i + gemm::kTileRows; ++j) w[j] = p[j] = 0;
  if (inverse != T(1)) scaled<T, I>(inverse, y, y, x.V);
  if (from_state * inverse != T(1)) scaled<T, I>(from_state * inverse, grad_q, grad_q, x.K);
  if (delta != T(0) && !x.empty) scaled<T, I, true>(from_state * delta, before.norm, grad_q, x.K);
  if (!rule.gated) return;
  b.from_state[i] = double(dot<T, I>(q, grad_q, x.K));
  if (rule.causal) pair_row<T, I>(b, decays ? b.logits : w, p, i);
}

template <class T, Isa I>
void Kernels<T, I>::backward_read(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s,
                                  const BackwardScratch<T>& b, const BackwardRows<T>& io) noexcept {
  using gemm::Store;
  const Index C = x.C, K = x.K, V = x.V;
  const T* values = s.sv + K * V;
  T* w = s.qw + K;
  chunk::Prefetch<T, I> prefetch{io.ahead};
  load_keys(x, rule, before, b);
  const bool decays = decays_pairs(rule, s.gates), factored = rule.gated && !decays;
  for (Index i = 0; i < C; ++i) {
    const T scale = factored ? T(rule.scale) * s.gates.from_state[i] : T(rule.scale);
    scaled<T, I>(scale, x.q.data + i * x.q.stride, s.qw + i * s.qw_stride, K);
    if (io.grad_o.data) copy_row<T, I>(io.grad_o.data + i * io.grad_o.stride, nullptr, b.y + i * V, V);
    for (Index c = 0; c < V && !io.grad_o.data; ++c) b.y[i * V + c] = 0;
  }
  if (x.empty) {
    for (Index i = 0; i < C * K; ++i) b.grad_q[i] = 0;
  } else {
    gemm::transpose<T, I>(K, V, before.state, V, b.state_t, K);
    gemm::multiply<T, I>(gemm::Full{}, C, K, V, {b.y, V, 1}, b.state_t, K, b.grad_q, K, Store::set, prefetch);
  }
  if (rule.causal) {
    gemm::transpose<T, I>(C, V, values, V, b.vt, s.kt_stride);
    const gemm::BandOfC lower{-C, 0};
    gemm::multiply<T, I>(lower, C, C, K, {s.qw, s.qw_stride, 1}, s.kt, s.kt_stride, w, s.qw_stride, Store::set, prefetch);
    gemm::multiply<T, I>(lower, C, C, V, {b.y, V, 1}, b.vt, s.kt_stride, b.p, s.kt_stride, Store::set, prefetch);
  }
  for (Index i = 0; i < C; ++i) backward_row<T, I>(x, rule, before, s, b, i);
  if (rule.causal) {
    const gemm::BandOfA upper{0, C};
    gemm::multiply<T, I>(gemm::BandOfA{-C, 0}, C, K, C, {b.p, s.kt_stride, 1}, b.k, K, b.grad_q, K, Store::add, prefetch);
    gemm::multiply<T, I>(upper, C, K, C, {b.p, 1, s.kt_stride}, s.qw, s.qw_stride, b.grad_k, K, Store::set, prefetch);
    gemm::multiply<T, I>(upper, C, V, C, {w, 1, s.qw_stride}, b.y, V, b.grad_v, V, Store::set, prefetch);
  } else {
    for (Index i = 0; i < C * K; ++i) b.grad_k[i] = 0;
    for (Index i = 0; i < C * V; ++i) b.grad_v[i] = 0;
  }
  for (Index i = 0; i < C; ++i) {
    T* q = s.qw + i * s.qw_stride;
    if (decays && rule.causal) scaled<T, I>(s.gates.from_state[i], q, q, K);
    const T scale = factored ? T(rule.scale) * s.gates.from_state[i] : T(rule.scale);
    if (io.grad_q.data) scaled<T, I>(scale, b.grad_q + i * K, io.grad_q.data + i * io.grad_q.stride, K);
    if (rule.gated && rule.causal) b.between[i] = b.inner[i] - b.between[i];
  }
}

template <class T, Isa I>
ISOMER_INLINE void sum_rows(const T* x, const T* y, T* to, Index n) {
  using V = simd::Vec<T, I>;
  each_vector<V>(n, [&](Index i, Index m) { (V::load(x + i, m) + V::load(y + i, m)).store(to + i, m); });
}

/// b.shift_k, b.shift_v = the means of `before` minus those of `about`.
template <class T>
ISOMER_INLINE void shift_of(const Tokens<T>& x, const Edge<T>& before, const Edge<T>& about, const BackwardScratch<T>& b) {
  for (Index a = 0; a < x.K; ++a) b.shift_k[a] = before.key_mean[a] - about.key_mean[a];
  for (Index c = 0; c < x.V; ++c) b.shift_v[c] = before.value_mean[c] - about.value_mean[c];
}

template <class T, Isa I>
void Kernels<T, I>::backward_state(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s,
                                   const BackwardScratch<T>& b, const Edge<T>& back, const Edge<T>& about,
                                   const BackwardRows<T>& io) noexcept {
  const Index C = x.C, K = x.K, V = x.V;
  gemm::transpose<T, I>(K, V, back.state, V, b.back_t, K);
  gemm::multiply<T, I>(gemm::Full{}, C, K, V, {s.sv + K * V, V, 1}, b.back_t, K, b.through, K, gemm::Store::set);
  if (rule.centred) {
    // Gradients of the sums about this chunk's means.
    shift_of(x, before, about, b);
    for (Index a = 0; a < K; ++a) s.sums_k[a] = back.norm[a] + dot<T, I>(back.state + a * V, b.shift_v, V);
    for (Index c = 0; c < V; ++c) s.sums_v[c] = back.value_sum[c] + dot<T, I>(b.back_t + c * K, b.shift_k, K);
  }
  const T* norm = rule.centred ? s.sums_k : rule.divides ? back.norm : nullptr;
  for (Index j = 0; j < C; ++j) {
    T *through = b.through + j * K, *k = b.k + j * K;
    const T at_edge = rule.gated ? s.gates.at_edge[j] : T(1);
    if (norm) scaled<T, I, true>(at_edge, norm, through, K);
    if (rule.gated) {
      scaled<T, I>(s.gates.to_state[j], through, through, K);
      b.to_state[j] = double(dot<T, I>(k, through, K));
      scaled<T, I>(s.gates.to_state[j], k, k, K);
    }
    if (io.grad_k.data) sum_rows<T, I>(through, b.grad_k + j * K, io.grad_k.data + j * io.grad_k.stride, K);
    if (rule.centred) scaled<T, I, true>(T(1), s.sums_v, b.grad_v + j * V, V);
  }
  gemm::multiply<T, I>(gemm::Full{}, C, V, K, {b.k, K, 1}, back.state, V, b.grad_v, V, gemm::Store::add);
  for (Index j = 0; j < C && io.grad_v.data; ++j)
    scaled<T, I>(rule.gated ? s.gates.at_edge[j] : T(1), b.grad_v + j * V, io.grad_v.data + j * io.grad_v.stride, V);
  *b.kept = 0;
  if (!rule.gated || x.empty || *s.gates.carry == T(0)) return;
  T kept = dot<T, I>(back.state, before.state, K * V);
  if (rule.divides) kept += dot<T, I>(back.norm, before.norm, K);
  *b.kept = double(*s.gates.carry) * double(kept);
}

template <class T, Isa I>
void Kernels<T, I>::backward_write(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s,
                                   const BackwardScratch<T>& b, const Edge<T>& back, const Edge<T>& about, Write mode) noexcept {
  const Index C = x.C, K = x.K, V = x.V;
  const T carry = *s.gates.carry;
  if (mode == Write::set) {
    for (Index i = 0; i < edge_sums(K, V); ++i) back.state[i] = 0;
  } else if (rule.causal && carry != T(1)) {
    scaled<T, I>(carry, back.state, back.state, K * V);
    scaled<T, I>(carry, back.norm, back.norm, K);
  }
  gemm::multiply<T, I>(gemm::Full{}, K, V, C, {s.qw, 1, s.qw_stride}, b.y, V, back.state, V, gemm::Store::add);
  if (rule.centred) shift_of(x, before, about, b);
  for (Index i = 0; i < C && (rule.divides || rule.centred); ++i) {
    const T *q = s.qw + i * s.qw_stride, *y = b.y + i * V;
    const T delta = b.delta[i] - (rule.centred ? dot<T, I>(y, b.shift_v, V) : T(0));
    scaled<T, I, true>(delta, q, back.norm, K);
    if (rule.centred) scaled<T, I, true>(s.shift[i] - dot<T, I>(q, b.shift_k, K), y, back.value_sum, V);
  }
}

}  // namespace isomer::scalar_decay_detail

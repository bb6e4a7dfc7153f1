#pragma once
// The chunk form, backward: see README.md for the derivation. For the translation units of one Isa.
#include "isomer/laws/scalar_decay/scalar_decay_chunk_impl.h"
#include "isomer/laws/scalar_decay/scalar_decay_walk_impl.h"

namespace isomer::scalar_decay_detail {

/// Do weights have decays of their own, which y and v do not carry?
template <class T>
ISOMER_INLINE bool decays_pairs(const Rule& rule, const Gates<T>& g) {
  return rule.gated && *g.factored == 0;
}

/// Where a gradient is made: in its place or, when nobody wants it, in the scratch.
template <class T>
ISOMER_INLINE Rows<T> target(Rows<T> wanted, T* scratch, Index width) {
  return wanted.data ? wanted : Rows<T>{scratch, width};
}

/// Gates of a chunk: all of it factors, or nothing does.
template <class T, Isa I>
void backward_gates(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Gates<T>& g) noexcept {
  *g.carry = *g.rescale = T(1);
  *g.factored = *g.gradual = 0;
  if (!rule.gated) return;
  const double max = rule.stabilised ? double(*before.max) : 0.0;
  if (rule.causal) {
    const Segment<T> all = scan_segment<T, I>(x, rule, g, 0, max);
    if (all.end == x.C && (all.rescale == T(1) || x.empty)) {
      exponentials<T, I>(rule, g, 0, x.C);
      *g.carry = all.carry;
      *g.rescale = all.rescale;
      *g.factored = x.C;
      return;
    }
  }
  scan_gates<T, I>(x, rule, max, g);
  *g.factored = 0;
  exponentials<T, I>(x, rule, max, g);
}

template <class T, Isa I>
void Kernels<T, I>::backward_load(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s,
                                  const BackwardScratch<T>& b) noexcept {
  const Index K = x.K, V = x.V;
  backward_gates<T, I>(x, rule, before, s.gates);
  T* values = s.sv + K * V;
  for (Index i = 0; i < x.C; ++i) {
    copy_row<T, I>(x.k.data + i * x.k.stride, rule.centred ? before.key_mean : nullptr, b.k + i * K, K);
    if (*s.gates.factored > 0)
      scaled<T, I>(s.gates.at_edge[i], x.v.data + i * x.v.stride, values + i * V, V);
    else
      copy_row<T, I>(x.v.data + i * x.v.stride, rule.centred ? before.value_mean : nullptr, values + i * V, V);
  }
}

/// Logits of row i -> weights, in place, and their sum. Keeps the decays of a chunk that does not factor. `gradual` as forward.
template <class T, Isa I, bool gradual>
T weigh_row_back(const Rule& rule, const Gates<T>& g, T* w, T* decay, Index i) noexcept {
  using V = simd::Vec<T, I>;
  V total = V::zero();
  if (!decays_pairs(rule, g)) {
    if (rule.gated)
      each_vector<V>(i + 1, [&](Index j, Index n) { total = fma(V::load(w + j, n), V::load(g.at_edge + j, n), total); });
    else
      each_vector<V>(i + 1, [&](Index j, Index n) { total = total + V::load(w + j, n); });
    return sum(total);
  }
  const Index begin = g.begin[i];
  for (Index j = 0; j < begin; ++j) w[j] = decay[j] = 0;
  const V hi = V::set(g.row_hi[i]), lo = V::set(g.row_lo[i]);
  each_vector<V>(i + 1 - begin, [&](Index at, Index n) {
    const Index j = begin + at;
    // Lanes beyond the diagonal may overflow: by way of memory they become zero.
    const V a = (hi + V::load(g.column_hi + j, n)) + (lo + V::load(g.column_lo + j, n));
    (gradual ? exp_gradual(a) : exp(a)).store(decay + j, n);
    const V y = V::load(w + j, n) * V::load(decay + j, n);
    y.store(w + j, n);
    total = total + y;
  });
  return sum(total);
}

/// Before the matrix products of y: the weights and the divisor of row i, and y = dO / divisor with what q lacks: the scale and
/// its gates.
template <class T, Isa I>
void weigh_and_divide(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s,
                      const BackwardScratch<T>& b, const T* grad_o, Index i) noexcept {
  const Gates<T>& g = s.gates;
  const T *q = s.qw + i * s.qw_stride, *norm = before.norm;
  const bool decays = decays_pairs(rule, g), factored = rule.gated && !decays, sums = rule.divides || rule.centred;
  T weights = 0, inverse = 1;
  T *w = s.qw + i * s.qw_stride + x.K, *decay = b.decay + i * s.kt_stride;
  if (decays && rule.causal && *g.gradual)
    weights = weigh_row_back<T, I, true>(rule, g, w, decay, i);
  else if (rule.causal && (sums || decays))
    weights = weigh_row_back<T, I, false>(rule, g, w, decay, i);
  // q of `subtract` has the scale.
  const T up = rule.centred ? T(1) : factored ? g.from_state[i] : T(rule.scale);
  T slope = 0;
  b.along_norm[i] = 0;
  if (rule.divides) {
    if (!x.empty) b.along_norm[i] = dot<T, I>(q, norm, x.K);
    const T den = up * (weights + (decays && rule.causal ? g.from_state[i] : T(1)) * b.along_norm[i]);
    const T one = rule.stabilised ? g.one[i] : T(1), size = den < 0 ? -den : den;
    inverse = inverse_divisor(rule, den, one);
    slope = !rule.stabilised ? -inverse : size > one ? (den < 0 ? inverse : -inverse) : T(0);
  } else if (rule.centred) {
    inverse = T(1 / (rule.causal ? x.count + double(i + 1) : x.count));
    if (x.first) weights += dot<T, I>(q, norm, x.K);
    slope = -inverse;
    s.shift[i] = T(1) - weights * inverse;
  }
  b.delta[i] = slope * up;
  scaled<T, I>(up * inverse, grad_o, b.y + i * x.V, x.V);
}

/// What the pairs of row i give to the gates. Rows come from the last to the first: `columns` has what rows from i on give to
/// each column, and its sum over the columns before i is what a gate at i stands between.
template <class T, Isa I>
void pair_row(const BackwardScratch<T>& b, const T* w, const T* p, Index i) noexcept {
  using V = simd::Vec<T, I>;
  V total = V::zero();
  each_vector<V>(i, [&](Index j, Index n) {
    const V z = fma(V::load(w + j, n), V::load(p + j, n), V::load(b.columns + j, n));
    z.store(b.columns + j, n);
    total = total + z;
  });
  b.inner[i] = double(b.columns[i]) + double(w[i]) * double(p[i]);
  b.between[i] = double(sum(total));
}

/// After the matrix products of y: the gradient of the divisor of row i, and what it adds to the row of grad_q that came from the
/// state, and to the row of p.
template <class T, Isa I>
void backward_row(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s, const BackwardScratch<T>& b,
                  T* grad_q, Index i) noexcept {
  using V = simd::Vec<T, I>;
  const Gates<T>& g = s.gates;
  T *q = s.qw + i * s.qw_stride, *w = q + x.K, *p = b.p + i * s.kt_stride, *decay = b.decay + i * s.kt_stride;
  const bool decays = decays_pairs(rule, g) && rule.causal;
  const T from_state = decays ? g.from_state[i] : T(1);
  const Index pairs = rule.causal ? i + 1 : 0;
  T along = x.empty ? T(0) : from_state * dot<T, I>(q, grad_q, x.K), delta = 0;
  if (rule.divides || rule.centred) {
    V total = V::zero();
    if (rule.divides)
      each_vector<V>(pairs, [&](Index j, Index n) { total = fma(V::load(w + j, n), V::load(p + j, n), total); });
    else
      each_vector<V>(pairs, [&](Index j, Index n) { total = total + V::load(p + j, n); });
    T products = sum(total);
    if (rule.divides) products += along;
    if (rule.centred && x.first) products += dot<T, I>(b.y + i * x.V, before.value_sum, x.V);
    delta = b.delta[i] * products;
    const V add = V::set(delta);
    if (rule.gated && !decays)
      each_vector<V>(pairs, [&](Index j, Index n) { fma(add, V::load(g.at_edge + j, n), V::load(p + j, n)).store(p + j, n); });
    else
      each_vector<V>(pairs, [&](Index j, Index n) { (V::load(p + j, n) + add).store(p + j, n); });
  }
  b.delta[i] = from_state * delta;
  if (from_state != T(1) && !x.empty) scaled<T, I>(from_state, grad_q, grad_q, x.K);
  if (b.delta[i] != T(0) && !x.empty) scaled<T, I, true>(b.delta[i], before.norm, grad_q, x.K);
  if (rule.gated) {
    b.from_state[i] = double(along) + double(b.delta[i]) * double(b.along_norm[i]);
    if (rule.causal) pair_row<T, I>(b, w, p, i);
  }
  if (decays) each_vector<V>(pairs, [&](Index j, Index n) { (V::load(p + j, n) * V::load(decay + j, n)).store(p + j, n); });
  if (rule.centred) each_vector<V>(pairs, [&](Index j, Index n) { (V::load(w + j, n) + V::set(s.shift[i])).store(w + j, n); });
}

template <class T, Isa I>
void Kernels<T, I>::backward_read(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s,
                                  const BackwardScratch<T>& b, const BackwardRows<T>& io) noexcept {
  using gemm::Store;
  using Vec = simd::Vec<T, I>;
  const Index C = x.C, K = x.K, V = x.V;
  const T* values = s.sv + K * V;
  T* w = s.qw + K;
  const Rows<T> grad_q = target(io.grad_q, b.grad_q, K), grad_k = target(io.grad_k, b.grad_k, K),
                grad_v = target(io.grad_v, b.grad_v, V);
  const gemm::BandOfC lower{-C, 0};
  chunk::Prefetch<T, I> prefetch{io.ahead};
  for (Index i = 0; i < C; ++i)
    scaled<T, I>(rule.centred ? T(rule.scale) : T(1), x.q.data + i * x.q.stride, s.qw + i * s.qw_stride, K);
  if (rule.causal) {
    gemm::transpose<T, I>(C, K, b.k, K, s.kt, s.kt_stride);
    gemm::multiply<T, I>(lower, C, C, K, {s.qw, s.qw_stride, 1}, s.kt, s.kt_stride, w, s.qw_stride, Store::set, prefetch);
  }
  if (!io.grad_o.data) each_vector<Vec>(V, [&](Index c, Index n) { Vec::zero().store(s.sums_v + c, n); });
  for (Index i = 0; i < C; ++i)
    weigh_and_divide<T, I>(x, rule, before, s, b, io.grad_o.data ? io.grad_o.data + i * io.grad_o.stride : s.sums_v, i);
  if (!x.empty) {
    gemm::multiply<T, I>(gemm::Full{}, C, K, V, {b.y, V, 1}, before.state, K, grad_q.data, grad_q.stride, Store::set, prefetch);
  }
  if (rule.causal) {
    gemm::transpose<T, I>(C, V, values, V, b.vt, s.kt_stride);
    gemm::multiply<T, I>(lower, C, C, V, {b.y, V, 1}, b.vt, s.kt_stride, b.p, s.kt_stride, Store::set, prefetch);
  }
  const bool rows = rule.gated || rule.divides || rule.centred;
  each_vector<Vec>(C, [&](Index j, Index n) { Vec::zero().store(b.columns + j, n); });
  for (Index i = C; i-- > 0;) {
    if (rows) backward_row<T, I>(x, rule, before, s, b, grad_q.data + i * grad_q.stride, i);
    // Matrix products skip what lies beyond a tile of the diagonal, but not what lies within.
    for (T* row : {w + i * s.qw_stride, b.p + i * s.kt_stride})
      if (rule.causal) each_vector<Vec>(gemm::kTileRows, [&](Index j, Index n) { Vec::zero().store(row + i + 1 + j, n); });
  }
  if (rule.causal) {
    const gemm::BandOfA upper{0, C};
    gemm::multiply<T, I>(gemm::BandOfA{-C, 0}, C, K, C, {b.p, s.kt_stride, 1}, b.k, K, grad_q.data, grad_q.stride,
                         x.empty ? Store::set : Store::add, prefetch);
    gemm::multiply<T, I>(upper, C, K, C, {b.p, 1, s.kt_stride}, s.qw, s.qw_stride, grad_k.data, grad_k.stride, Store::set,
                         prefetch);
    gemm::multiply<T, I>(upper, C, V, C, {w, 1, s.qw_stride}, b.y, V, grad_v.data, grad_v.stride, Store::set, prefetch);
  } else {
    for (Index i = 0; i < C; ++i) {
      each_vector<Vec>(K, [&](Index a, Index n) { Vec::zero().store(grad_k.data + i * grad_k.stride + a, n); });
      each_vector<Vec>(V, [&](Index c, Index n) { Vec::zero().store(grad_v.data + i * grad_v.stride + c, n); });
    }
  }
  for (Index i = 0; i < C && rule.centred; ++i)
    scaled<T, I>(T(rule.scale), grad_q.data + i * grad_q.stride, grad_q.data + i * grad_q.stride, K);
}

/// b.shift_k, b.shift_v = the means of `before` minus those of `about`.
template <class T>
ISOMER_INLINE void shift_of(const Tokens<T>& x, const Edge<T>& before, const Edge<T>& about, const BackwardScratch<T>& b) {
  for (Index a = 0; a < x.K; ++a) b.shift_k[a] = before.key_mean[a] - about.key_mean[a];
  for (Index c = 0; c < x.V; ++c) b.shift_v[c] = before.value_mean[c] - about.value_mean[c];
}

/// to += factor · (through + weight · norm), and the product of what was added with k.
template <class T, Isa I>
ISOMER_INLINE T add_through(T factor, const T* through, T weight, const T* norm, const T* k, T* to, Index K) {
  using V = simd::Vec<T, I>;
  const V f = V::set(factor), a = V::set(weight);
  V total = V::zero();
  each_vector<V>(K, [&](Index i, Index n) {
    const V y = f * (norm ? fma(a, V::load(norm + i, n), V::load(through + i, n)) : V::load(through + i, n));
    total = fma(V::load(k + i, n), y, total);
    (V::load(to + i, n) + y).store(to + i, n);
  });
  return sum(total);
}

/// What a gate of the chunk gives to the state that all of it passes: carry <dS', S>, both transposed.
template <class T, Isa I>
double kept_of(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Gates<T>& g, const T* back_t,
               const T* norm) noexcept {
  if (!rule.gated || x.empty || *g.carry == T(0)) return 0;
  T kept = dot<T, I>(back_t, before.state, x.K * x.V);
  if (rule.divides) kept += dot<T, I>(norm, before.norm, x.K);
  return double(*g.carry) * double(kept);
}

template <class T, Isa I>
void Kernels<T, I>::backward_state(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s,
                                   const BackwardScratch<T>& b, const Edge<T>& back, const Edge<T>& about,
                                   const BackwardRows<T>& io) noexcept {
  using gemm::Store;
  const Index C = x.C, K = x.K, V = x.V;
  const Gates<T>& g = s.gates;
  const bool decays = decays_pairs(rule, g);
  const Rows<T> grad_k = target(io.grad_k, b.grad_k, K), grad_v = target(io.grad_v, b.grad_v, V);
  gemm::transpose<T, I>(K, V, back.state, V, b.back_t, K);
  *b.kept = kept_of<T, I>(x, rule, before, g, b.back_t, back.norm);
  if (rule.centred) {
    // Gradients of the sums about this chunk's means.
    shift_of(x, before, about, b);
    for (Index a = 0; a < K; ++a) s.sums_k[a] = back.norm[a] + dot<T, I>(back.state + a * V, b.shift_v, V);
    for (Index c = 0; c < V; ++c) s.sums_v[c] = back.value_sum[c] + dot<T, I>(b.back_t + c * K, b.shift_k, K);
    for (Index j = 0; j < C; ++j) scaled<T, I, true>(T(1), s.sums_v, grad_v.data + j * grad_v.stride, V);
  }
  const gemm::Strided<T> values{s.sv + K * V, V, 1}, keys{b.k, K, 1};
  const T* norm = rule.centred ? s.sums_k : rule.divides ? back.norm : nullptr;
  if (!rule.gated && !norm) {
    gemm::multiply<T, I>(gemm::Full{}, C, K, V, values, b.back_t, K, grad_k.data, grad_k.stride, Store::add);
  } else {
    gemm::multiply<T, I>(gemm::Full{}, C, K, V, values, b.back_t, K, b.through, K, Store::set);
    for (Index j = 0; j < C; ++j)
      b.to_state[j] =
          double(add_through<T, I>(decays ? g.to_state[j] : *g.carry, b.through + j * K, rule.gated ? g.at_edge[j] : T(1), norm,
                                   b.k + j * K, grad_k.data + j * grad_k.stride, K));
  }
  const gemm::Into<T> into = *g.factored > 0 ? gemm::Into<T>(g.at_edge, *g.carry) : gemm::Into<T>(Store::add);
  if (!decays) return gemm::multiply<T, I>(gemm::Full{}, C, V, K, keys, back.state, V, grad_v.data, grad_v.stride, into);
  gemm::multiply<T, I>(gemm::Full{}, C, V, K, keys, back.state, V, b.vt, V, Store::set);
  for (Index j = 0; j < C; ++j) scaled<T, I, true>(g.to_state[j], b.vt + j * V, grad_v.data + j * grad_v.stride, V);
}

template <class T, Isa I>
void Kernels<T, I>::backward_write(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s,
                                   const BackwardScratch<T>& b, const Edge<T>& back, const Edge<T>& about, Write mode) noexcept {
  using Vec = simd::Vec<T, I>;
  const Index C = x.C, K = x.K, V = x.V;
  const T carry = *s.gates.carry, rescale = *s.gates.rescale;
  const bool decays = decays_pairs(rule, s.gates) && rule.causal;
  gemm::Into<T> into = mode == Write::set ? gemm::Store::set : gemm::Store::add;
  if (mode == Write::set) {
    for (Index i = K * V; i < edge_sums(K, V); ++i) back.state[i] = 0;
  } else if (rule.causal && carry != T(1)) {
    scaled<T, I>(carry, back.norm, back.norm, K);
    each_vector<Vec>(K, [&](Index a, Index n) { Vec::set(carry).store(s.sums_k + a, n); });
    into = gemm::Into<T>(s.sums_k);
  }
  for (Index i = 0; i < C && decays; ++i) scaled<T, I>(s.gates.from_state[i], b.y + i * V, b.y + i * V, V);
  gemm::multiply<T, I>(gemm::Full{}, K, V, C, {s.qw, 1, s.qw_stride}, b.y, V, back.state, V, into);
  if (rule.centred) {
    shift_of(x, before, about, b);
    for (Index i = 0; i < C; ++i) {
      const T *q = s.qw + i * s.qw_stride, *y = b.y + i * V;
      b.delta[i] -= dot<T, I>(y, b.shift_v, V);
      scaled<T, I, true>(s.shift[i] - dot<T, I>(q, b.shift_k, K), y, back.value_sum, V);
    }
  }
  if (rule.divides || rule.centred)
    each_vector<Vec>(K, [&](Index a, Index n) {
      Vec total = Vec::load(back.norm + a, n);
      for (Index i = 0; i < C; ++i) total = fma(Vec::set(b.delta[i]), Vec::load(s.qw + i * s.qw_stride + a, n), total);
      total.store(back.norm + a, n);
    });
  // A state that is zero may be as far away as it likes.
  if (rescale != T(1)) scaled<T, I>(rescale, back.state, back.state, edge_sums(K, V));
}

}  // namespace isomer::scalar_decay_detail

#pragma once
// The matrices of a chunk: see README.md for the derivation. For the translation units of one Isa; include vec_<isa>.h first.
#include <cmath>

#include "isomer/kernels/gemm/tile_impl.h"
#include "isomer/laws/chunk_rows_impl.h"
#include "isomer/laws/delta/delta_chunk.h"
#include "isomer/simd/math.h"

namespace isomer::delta_detail {

using chunk::copy_row;
using chunk::dot;
using chunk::each_vector;
using chunk::Prefetch;
using chunk::scaled;

/// Inside a segment no prefix sum of log_decay is larger than this: e^60 times anything reasonable is far from overflow, and
/// e^-60 far from underflow, in float.
inline constexpr double kSpan = 60;
/// Under the root of l2norm.
inline constexpr double kNormEps = 1e-6;

/// Triangles. A token has `writes` writes and here one reader, q or x; or both, row after row.
/// C(i, p) is needed only for writes p of the tokens up to that of row i, which is first + i / readers.
template <int readers>
struct LowerOfC {
  Index first, writes;
  [[nodiscard]] ISOMER_INLINE Index end(Index i, Index rows) const { return writes * (first + (i + rows - 1) / readers + 1); }
  [[nodiscard]] ISOMER_INLINE gemm::Range depth(Index i, Index rows, Index j, Index, Index depth) const {
    return {0, j < end(i, rows) ? depth : 0};
  }
};
/// A(i, p) is zero for p from before + writes · (i / readers + 1) on.
template <int readers>
struct LowerOfA {
  Index before, writes;
  [[nodiscard]] ISOMER_INLINE gemm::Range depth(Index i, Index rows, Index, Index, Index depth) const {
    const Index end = before + writes * ((i + rows - 1) / readers + 1);
    return {0, end < depth ? end : depth};
  }
};
/// A(i, p) is zero for readers p of tokens before that of write i.
template <int readers>
struct UpperOfA {
  Index writes;
  [[nodiscard]] ISOMER_INLINE gemm::Range depth(Index i, Index, Index, Index, Index depth) const {
    return {readers * (i / writes), depth};
  }
};

/// y = f ∘ x
template <class T, Isa I>
ISOMER_INLINE void times(const T* f, const T* x, T* y, Index n) {
  using V = simd::Vec<T, I>;
  each_vector<V>(n, [&](Index i, Index m) { (V::load(f + i, m) * V::load(x + i, m)).store(y + i, m); });
}
/// y = a · f ∘ x; a null f is 1.
template <class T, Isa I>
ISOMER_INLINE void times(T a, const T* f, const T* x, T* y, Index n) {
  using V = simd::Vec<T, I>;
  if (f == nullptr) return scaled<T, I>(a, x, y, n);
  const V s = V::set(a);
  each_vector<V>(n, [&](Index i, Index m) { (s * V::load(f + i, m) * V::load(x + i, m)).store(y + i, m); });
}

/// Row a of [K, V] times carry(a).
template <class T, Isa I>
ISOMER_INLINE void carry_rows(const T* carry, const T* from, T* to, Index K, Index V) {
  for (Index a = 0; a < K; ++a) scaled<T, I>(carry[a], from + a * V, to + a * V, V);
}

/// (sum, rest) += the decays of a token, and is every sum still within kSpan?
template <class T, Isa I>
bool add_gates(const T* gates, const LoadScratch<T>& s, Index n) noexcept {
  using V = simd::Vec<T, I>;
  V worst = V::zero();
  each_vector<V>(n, [&](Index i, Index m) {
    const V a = V::load(s.sum + i, m), g = V::load(gates + i, m), sum = a + g, part = sum - a;
    (V::load(s.rest + i, m) + ((a - (sum - part)) + (g - part))).store(s.rest + i, m);
    sum.store(s.sum + i, m);
    worst = max(abs(sum), worst);
  });
  return largest(worst) <= T(kSpan);
}

/// A segment begins at token i: what came before passes through its decay, e^gates, and sums start again.
template <class T, Isa I>
void begin_segment(const T* gates, const Matrices<T>& m, const LoadScratch<T>& s, Index i, Index n) noexcept {
  using V = simd::Vec<T, I>;
  m.first[(*m.segments)++] = i;
  each_vector<V>(n, [&](Index c, Index w) {
    exp(V::load(gates + c, w)).store(m.entry + i * n + c, w);
    V::zero().store(s.sum + c, w);
    V::zero().store(s.rest + c, w);
  });
}

/// The first segment begins at the chunk's edge, before the decay of its first token, if that `fits`.
template <class T>
ISOMER_INLINE void begin_at_edge(const Matrices<T>& m, bool fits, Index n) {
  *m.from_edge = fits ? 1 : 0;
  if (fits) m.first[(*m.segments)++] = 0;
  for (Index c = 0; c < n && fits; ++c) m.entry[c] = 1;
}

/// Prefix sums of the gates of keys and their exponentials. A segment ends where its sums leave kSpan: what belongs to it follows
/// from the tokens before.
template <class T, Isa I>
void scan_keys(const Tokens<T>& x, const Matrices<T>& m, const LoadScratch<T>& s) noexcept {
  using V = simd::Vec<T, I>;
  const Index K = x.K;
  for (Index c = 0; c < K; ++c) s.sum[c] = s.rest[c] = 0;
  for (Index i = 0; i < x.C; ++i) {
    const T* gates = x.log_decay.data + i * x.log_decay.stride;
    const bool fits = add_gates<T, I>(gates, s, K);
    if (i == 0) begin_at_edge(m, fits, K);
    if (!fits) begin_segment<T, I>(gates, m, s, i, K);
    T *up = m.up + i * K, *down = m.down + i * K;
    each_vector<V>(K, [&](Index c, Index w) {
      const V e = exp(V::load(s.sum + c, w)), decay = fma(e, V::load(s.rest + c, w), e);
      decay.store(up + c, w);
      (V::set(T(1)) / decay).store(down + c, w);
    });
  }
}

/// The same for the gates of a head: one number a token, summed in double.
template <class T, Isa I>
void scan_head(const Tokens<T>& x, const Matrices<T>& m) noexcept {
  using V = simd::Vec<T, I>;
  double sum = 0;
  for (Index i = 0; i < x.C; ++i) {
    const double gate = double(x.log_decay.data[i * x.log_decay.stride]), next = sum + gate;
    const bool fits = next <= kSpan && next >= -kSpan;
    if (i == 0) begin_at_edge(m, fits, 1);
    if (!fits) {
      m.first[(*m.segments)++] = i;
      m.entry[i] = T(::exp(gate));
    }
    sum = fits ? next : 0;
    m.up[i] = T(sum);
    m.down[i] = T(sum - double(m.up[i]));
  }
  each_vector<V>(x.C, [&](Index i, Index w) {
    const V g = V::load(m.up + i, w), rest = V::load(m.down + i, w), e = exp(g), f = exp(-g);
    fma(e, rest, e).store(m.up + i, w);
    fnma(f, rest, f).store(m.down + i, w);
  });
}

template <class T, Isa I>
void scan_gates(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s) noexcept {
  *m.segments = 0;
  *m.from_edge = 1;
  if (rule.gate == Gate::head) scan_head<T, I>(x, m);
  if (rule.gate == Gate::key) scan_keys<T, I>(x, m, s);
  if (rule.gate == Gate::none) m.first[(*m.segments)++] = 0;
  m.first[*m.segments] = x.C;
}

/// The decay of reader x of token i since the beginning of its segment, null for none: a reads before its token's decay.
template <class T>
ISOMER_INLINE const T* up_of_x(const Rule& rule, const Matrices<T>& m, Index i, bool first, Index n) {
  if (!rule.low_rank) return m.up + i * n;
  return first ? nullptr : m.up + (i - 1) * n;
}

/// Readers and writers of token i at the beginning of its segment.
template <class T, Isa I>
void fill_row(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, Index i, bool first, T* q, T* r, T* w) noexcept {
  const Index K = x.K, n = rule.gates(K);
  const T *qi = x.q.data + i * x.q.stride, *ki = x.k.data + i * x.k.stride;
  const T* ri = rule.low_rank ? x.a.data + i * x.a.stride : ki;
  const T sq = T(rule.scale) * m.norm_q[i], sk = m.norm_k[i], sr = rule.low_rank ? T(1) : -sk, sw = m.beta[i] * sk;
  if (rule.gate == Gate::key) {
    const T* down = m.down + i * n;
    times<T, I>(sq, m.up + i * n, qi, q, K);
    times<T, I>(sr, up_of_x(rule, m, i, first, n), ri, r, K);
    times<T, I>(sw, down, ki, w, K);
    if (rule.low_rank) times<T, I>(down, x.b.data + i * x.b.stride, w + K, K);
    return;
  }
  const T up = n ? m.up[i] : T(1), down = n ? m.down[i] : T(1);
  scaled<T, I>(sq * up, qi, q, K);
  scaled<T, I>(sr * up, ri, r, K);
  scaled<T, I>(sw * down, ki, w, K);
}

/// Are readers and writers of a chunk as they are in memory, and their factors numbers of each token (`scale_x`, `scale_q`,
/// `scale_w`)? So it is unless an element has its own decay, or there are segments. Then rows of x are also the writers.
template <class T>
ISOMER_INLINE bool unscaled(const Rule& rule, const Matrices<T>& m) {
  return rule.gate != Gate::key && m.whole();
}
template <class T>
ISOMER_INLINE Rows<T> writers(const Rule& rule, const Matrices<T>& m, Index K) {
  return unscaled(rule, m) ? Rows<T>{m.x, m.stride} : Rows<T>{m.w, K};
}

/// The factors of unscaled rows, or ones.
template <class T>
void load_factors(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, bool are_unscaled) noexcept {
  for (Index i = 0; i < x.C; ++i) {
    const T up = rule.gate == Gate::head ? m.up[i] : T(1), down = rule.gate == Gate::head ? m.down[i] : T(1);
    m.scale_x[i] = are_unscaled ? -m.norm_k[i] * up : T(1);
    m.scale_q[i] = are_unscaled ? T(rule.scale) * m.norm_q[i] * up : T(1);
    m.scale_w[i] = are_unscaled ? m.beta[i] * m.norm_k[i] * down : T(1);
  }
}

/// Columns of whole vectors: matrix products need not cut the last where a row has room for it.
template <class T, Isa I>
ISOMER_INLINE Index whole_vectors(Index columns) {
  return round_up(columns, simd::Vec<T, I>::lanes);
}

/// Zeros right of the diagonal, as far as tiles of matrix products reach; vectors are stored whole.
template <class T, Isa I>
ISOMER_INLINE void clear_upper(T* row, Index from, Index writes, Index N) {
  using V = simd::Vec<T, I>;
  const Index reach = from + writes * gemm::kTileRows, end = reach < N ? reach : N;
  for (Index p = from - from % V::lanes; p < end; p += V::lanes) V::load(row + p, from - p).store(row + p);
}

/// L and P of one segment that begins at the chunk's edge.
template <class T, Isa I>
void multiply_whole(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s,
                    Prefetch<T, I>& prefetch) noexcept {
  const Index C = x.C, K = x.K, N = rule.writes() * C;
  const Rows<T> w = writers(rule, m, K);
  gemm::transpose<T, I>(N, K, w.data, w.stride, s.wt, s.stride);
  gemm::multiply<T, I>(LowerOfC<2>{0, rule.writes()}, 2 * C, whole_vectors<T, I>(N), K, {m.x, m.row(), 1}, s.wt, s.stride,
                       m.x + K, m.row(), gemm::Store::set, prefetch);
  const Index n = rule.gates(K);
  for (Index a = 0; a < K; ++a) m.carry[a] = n == 0 ? T(1) : m.up[(C - 1) * n + (n == 1 ? 0 : a)];
}

/// The a-th element of a token's gates, one for the head or one for each key.
template <class T>
ISOMER_INLINE T gate_at(const T* gates, Index n, Index a) {
  return gates[n == 1 ? 0 : a];
}
/// wt(a, p) *= gates(a) for p < columns.
template <class T, Isa I>
void decay_writers(const T* gates, Index n, const LoadScratch<T>& s, Index K, Index columns) noexcept {
  for (Index a = 0; a < K; ++a) scaled<T, I>(gate_at(gates, n, a), s.wt + a * s.stride, s.wt + a * s.stride, columns);
}

/// L and P segment after segment: earlier writers are carried along to the beginning of each, and at last to the chunk's end.
template <class T, Isa I>
void multiply_segments(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s) noexcept {
  const Index C = x.C, K = x.K, W = rule.writes(), n = rule.gates(K);
  for (Index a = 0; a < K; ++a) s.from[a] = 1;
  for (Index g = 0; g < *m.segments; ++g) {
    const Index begin = m.first[g], end = m.first[g + 1], before = W * begin;
    T *xb = m.x + begin * m.stride, *qb = m.q + begin * m.stride;
    if (rule.low_rank) {
      // The first a reads before its token's decay.
      gemm::multiply<T, I>(gemm::Full{}, 1, before, K, {xb, m.stride, 1}, s.wt, s.stride, xb + K, m.stride, gemm::Store::set);
      times<T, I>(s.from, xb, xb, K);
    }
    const T* entry = m.entry + begin * n;
    decay_writers<T, I>(entry, n, s, K, before);
    for (Index a = 0; a < K; ++a) s.from[a] *= gate_at(entry, n, a);
    gemm::transpose<T, I>(W * (end - begin), K, m.w + before * K, K, s.wt + before, s.stride);
    const Index skip = rule.low_rank ? 1 : 0, rows = end - begin;
    gemm::multiply<T, I>(LowerOfC<1>{begin + skip, W}, rows - skip, W * end, K, {xb + skip * m.stride, m.stride, 1}, s.wt,
                         s.stride, xb + skip * m.stride + K, m.stride, gemm::Store::set);
    gemm::multiply<T, I>(LowerOfC<1>{begin, W}, rows, W * end, K, {qb, m.stride, 1}, s.wt, s.stride, qb + K, m.stride,
                         gemm::Store::set);
    for (Index i = 0; i < rows; ++i) {
      times<T, I>(s.from, qb + i * m.stride, qb + i * m.stride, K);
      if (i >= skip) times<T, I>(s.from, xb + i * m.stride, xb + i * m.stride, K);
    }
    const T* up = m.up + (end - 1) * n;
    decay_writers<T, I>(up, n, s, K, W * end);
    for (Index a = 0; a < K; ++a) s.from[a] *= gate_at(up, n, a);
  }
  for (Index a = 0; a < K; ++a) m.carry[a] = s.from[a];
  gemm::transpose<T, I>(K, W * C, s.wt, s.stride, m.w, K);
}

template <class T, Isa I>
ISOMER_INLINE T inverse_norm(const Rule& rule, const T* row, Index K) {
  if (!rule.l2norm) return T(1);
  return T(1) / T(__builtin_sqrt(double(dot<T, I>(row, row, K)) + kNormEps));
}

/// Norms, beta and the decays of a chunk.
template <class T, Isa I>
void scan_chunk(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s) noexcept {
  for (Index i = 0; i < x.C; ++i) {
    m.norm_q[i] = inverse_norm<T, I>(rule, x.q.data + i * x.q.stride, x.K);
    m.norm_k[i] = inverse_norm<T, I>(rule, x.k.data + i * x.k.stride, x.K);
    m.beta[i] = x.beta.data ? x.beta.data[i * x.beta.stride] : T(1);
  }
  scan_gates<T, I>(x, rule, m, s);
}

/// Readers and writers of all tokens at the beginning of their segments.
template <class T, Isa I>
void fill_rows(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m) noexcept {
  Index next = 0;
  for (Index i = 0; i < x.C; ++i) {
    const bool first = i == m.first[next];
    next += first ? 1 : 0;
    fill_row<T, I>(x, rule, m, i, first, m.q + i * m.stride, m.x + i * m.stride, m.w + i * rule.writes() * x.K);
  }
}

template <class T, Isa I>
void load_chunk(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s,
                Prefetch<T, I>& prefetch) noexcept {
  const Index C = x.C, K = x.K, W = rule.writes(), N = W * C;
  scan_chunk<T, I>(x, rule, m, s);
  load_factors(x, rule, m, unscaled(rule, m));
  for (Index i = 0; i < C && unscaled(rule, m); ++i) {
    copy_row<T, I>(x.k.data + i * x.k.stride, nullptr, m.x + i * m.stride, K);
    copy_row<T, I>(x.q.data + i * x.q.stride, nullptr, m.q + i * m.stride, K);
  }
  if (!unscaled(rule, m)) fill_rows<T, I>(x, rule, m);
  if (m.whole())
    multiply_whole<T, I>(x, rule, m, s, prefetch);
  else
    multiply_segments<T, I>(x, rule, m, s);
  // Only matrix products read beyond the diagonal.
  for (Index i = 0; i < C && rule.low_rank; ++i) {
    clear_upper<T, I>(m.x + i * m.stride + K, W * i, W, N);
    clear_upper<T, I>(m.q + i * m.stride + K, W * (i + 1), W, N);
  }
}

template <class T, Isa I>
void Kernels<T, I>::load(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s) noexcept {
  Prefetch<T, I> nothing{{}};
  load_chunk<T, I>(x, rule, m, s, nothing);
}

}  // namespace isomer::delta_detail

#pragma once
// The chunk form, backward: see README.md for the derivation. For the translation units of one Isa.
#include "isomer/laws/delta/delta_load_impl.h"

namespace isomer::delta_detail {

/// e^x is 0 in double below this: a decay that forgets everything, like −inf.
inline constexpr double kForgets = -750;

/// A(i, p) is zero for p < i / writes − begin.
struct UpperOfSegment {
  Index writes, begin;
  [[nodiscard]] ISOMER_INLINE gemm::Range depth(Index i, Index, Index, Index, Index depth) const {
    const Index first = i / writes - begin;
    return {first > 0 ? first : 0, depth};
  }
};

/// Rows i … i + rows − 1 of the gradient of u, from those behind them and then, in registers, from each other.
template <class T, Isa I, int rows, int vectors, bool cut>
inline void backward_tile(const Tokens<T>& x, const Matrices<T>& m, const BackwardScratch<T>& b, Index W, Index i, Index column,
                          Index width) noexcept {
  using V = simd::Vec<T, I>;
  const auto left = [&](int v) { return cut ? width - v * V::lanes : V::lanes; };
  const T* l = m.x + x.K + W * i + W - 1;  // L(p, u of row i) = l[p * stride]
  V sum[rows][vectors];
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v)
      sum[r][v] = V::load(b.grad_z + (W * (i + r) + W - 1) * x.V + column + v * V::lanes, left(v));
  for (Index p = i + rows; p < x.C; ++p) {
    V row[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) row[v] = V::load(b.grads + 2 * p * x.V + column + v * V::lanes, left(v));
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      const V f = V::set(l[p * m.stride + W * r]);
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sum[r][v] = fma(f, row[v], sum[r][v]);
    }
  }
#pragma GCC unroll 6
  for (int r = rows - 1; r >= 0; --r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      sum[r][v].store(b.grads + 2 * (i + r) * x.V + column + v * V::lanes, left(v));
#pragma GCC unroll 6
      for (int e = 0; e < r; ++e) sum[e][v] = fma(V::set(l[(i + r) * m.stride + W * e]), sum[r][v], sum[e][v]);
    }
}

template <class T, Isa I, int vectors, bool cut>
void backward_columns(const Tokens<T>& x, const Matrices<T>& m, const BackwardScratch<T>& b, Index W, Index column,
                      Index width) noexcept {
  Index i = x.C;
  for (; i >= gemm::kTileRows; i -= gemm::kTileRows)
    backward_tile<T, I, gemm::kTileRows, vectors, cut>(x, m, b, W, i - gemm::kTileRows, column, width);
  for (; i > 0; --i) backward_tile<T, I, 1, vectors, cut>(x, m, b, W, i - 1, column, width);
}

/// b.back = the gradient of the state after the chunk where the writers meet it: before the carry, if they do.
template <class T, Isa I>
void load_back(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const T* back, const BackwardScratch<T>& b) noexcept {
  if (rule.gate == Gate::none || *m.segments > 0)
    copy_row<T, I>(back, nullptr, b.back, x.K * x.V);
  else
    carry_rows<T, I>(m.carry, back, b.back, x.K, x.V);
}

/// The gradients of z and u: b.grad_z and b.grads.
template <class T, Isa I>
void backward_solve(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const BackwardScratch<T>& b, Rows<const T> grad_o,
                    const T* back, Prefetch<T, I>& prefetch) noexcept {
  using gemm::Store;
  constexpr Index lanes = simd::Vec<T, I>::lanes;
  const Index C = x.C, K = x.K, V = x.V, W = rule.writes(), N = W * C;
  for (Index i = 0; i < C; ++i) {
    T* to = b.grads + (2 * i + 1) * V;
    if (grad_o.data) copy_row<T, I>(grad_o.data + i * grad_o.stride, nullptr, to, V);
    for (Index c = 0; c < V && !grad_o.data; ++c) to[c] = 0;
  }
  load_back<T, I>(x, rule, m, back, b);
  gemm::multiply<T, I>(UpperOfA<1>{W}, N, V, C, {m.q + K, 1, m.stride}, b.grads + V, 2 * V, b.grad_z, V, Store::set, prefetch);
  gemm::multiply<T, I>(gemm::Full{}, N, V, K, {m.w, K, 1}, b.back, V, b.grad_z, V, Store::add, prefetch);
  Index c = 0;
  for (; c + 2 * lanes <= V; c += 2 * lanes) backward_columns<T, I, 2, false>(x, m, b, W, c, 2 * lanes);
  for (; c < V; c += lanes) backward_columns<T, I, 1, true>(x, m, b, W, c, V - c < lanes ? V - c : lanes);
  // Values of the low-rank rule are read by later tokens, too.
  if (rule.low_rank)
    gemm::multiply<T, I>(UpperOfA<1>{1}, C, V, C, {m.x + K, W, m.stride}, b.grads, 2 * V, b.grad_z, W * V, Store::add, prefetch);
}

/// The gradient of the state before the chunk in place of that after it, after backward_solve().
template <class T, Isa I>
void backward_write(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const BackwardScratch<T>& b, T* back,
                    Prefetch<T, I>& prefetch) noexcept {
  const Index C = x.C, K = x.K, V = x.V;
  const gemm::Into<T> into = rule.gate == Gate::none ? gemm::Into<T>(gemm::Store::add) : gemm::Into<T>(m.carry);
  gemm::multiply<T, I>(gemm::Full{}, K, V, 2 * C, {m.x, 1, m.row()}, b.grads, V, back, V, into, prefetch);
}

template <class T, Isa I>
void Kernels<T, I>::retreat(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const BackwardScratch<T>& b,
                            Rows<const T> grad_o, T* back) noexcept {
  Prefetch<T, I> nothing{{}};
  backward_solve<T, I>(x, rule, m, b, grad_o, back, nothing);
  backward_write<T, I>(x, rule, m, b, back, nothing);
}

/// rows of K elements times a token's gates.
template <class T, Isa I>
void decay_rows(const T* gates, Index n, T* rows, Index count, Index K) noexcept {
  if (n == 1) return scaled<T, I>(*gates, rows, rows, count * K);
  for (Index i = 0; i < count; ++i) times<T, I>(gates, rows + i * K, rows + i * K, K);
}

/// Readers and writers at the beginning of their segments, as multiply_segments() found them.
template <class T, Isa I>
void load_segments(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const BackwardScratch<T>& b) noexcept {
  const Index K = x.K;
  Index next = 0;
  for (Index i = 0; i < x.C; ++i) {
    const bool first = i == m.first[next];
    next += first ? 1 : 0;
    fill_row<T, I>(x, rule, m, i, first, b.seg_q + i * K, b.seg_x + i * K, b.seg_w + i * rule.writes() * K);
  }
}

/// The gradients of readers, segment after segment, with the writers carried along as in multiply_segments().
template <class T, Isa I>
void read_segments(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s,
                   const BackwardScratch<T>& b) noexcept {
  const Index K = x.K, W = rule.writes(), N = W * x.C, n = rule.gates(K), skip = rule.low_rank ? 1 : 0;
  T* carried = s.wt;  // [N,K]
  for (Index a = 0; a < K; ++a) s.from[a] = 1;
  const auto add = [&](auto shape, Index rows, Index depth, const T* grad, T* to) {
    gemm::multiply<T, I>(shape, rows, K, depth, {grad, 2 * N, 1}, carried, K, to, 2 * K, gemm::Store::add);
  };
  for (Index g = 0; g < *m.segments; ++g) {
    const Index begin = m.first[g], end = m.first[g + 1], before = W * begin;
    T *rx = b.reads + 2 * begin * K, *rq = rx + K;
    const T *gl = b.pairs + 2 * begin * N, *gp = gl + N;
    if (rule.low_rank) {
      times<T, I>(s.from, rx, rx, K);
      if (begin > 0) add(gemm::Full{}, 1, before, gl, rx);
    }
    decay_rows<T, I>(m.jump + begin * n, n, carried, before, K);
    decay_rows<T, I>(m.jump + begin * n, n, s.from, 1, K);
    copy_row<T, I>(b.seg_w + before * K, nullptr, carried + before * K, W * (end - begin) * K);
    for (Index i = 0; i < end - begin; ++i) times<T, I>(s.from, rq + 2 * i * K, rq + 2 * i * K, K);
    for (Index i = skip; i < end - begin; ++i) times<T, I>(s.from, rx + 2 * i * K, rx + 2 * i * K, K);
    add(LowerOfA<1>{before, W}, end - begin, W * end, gp, rq);
    add(LowerOfA<1>{before + skip * W, W}, end - begin - skip, W * end, gl + 2 * skip * N, rx + 2 * skip * K);
    decay_rows<T, I>(m.up + (end - 1) * n, n, carried, W * end, K);
    decay_rows<T, I>(m.up + (end - 1) * n, n, s.from, 1, K);
  }
}

/// Those of writers, from the chunk's end back to the beginning of the segment of each.
template <class T, Isa I>
void write_segments(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const BackwardScratch<T>& b) noexcept {
  const Index K = x.K, W = rule.writes(), N = W * x.C, n = rule.gates(K), skip = rule.low_rank ? 1 : 0;
  for (Index g = *m.segments; g-- > 0;) {
    const Index begin = m.first[g], end = m.first[g + 1], before = W * begin;
    decay_rows<T, I>(m.up + (end - 1) * n, n, b.write, W * end, K);
    const auto add = [&](Index from, Index to, const T* grad, const T* rows) {
      gemm::multiply<T, I>(UpperOfSegment{W, from}, W * end, K, to - from, {grad + 2 * from * N, 1, 2 * N}, rows + from * K, K,
                           b.write, K, gemm::Store::add);
    };
    if (end > begin) add(begin, end, b.pairs + N, b.seg_q);
    if (end > begin + skip) add(begin + skip, end, b.pairs, b.seg_x);
    decay_rows<T, I>(m.jump + begin * n, n, b.write, before, K);
    if (rule.low_rank && begin > 0)
      gemm::multiply<T, I>(gemm::Full{}, before, K, 1, {b.pairs + 2 * begin * N, 1, N}, b.seg_x + begin * K, K, b.write, K,
                           gemm::Store::add);
  }
}

/// y = a · gates ∘ x (+ y); null gates are 1.
template <class T, Isa I, bool add = false>
void decayed(T a, const T* gates, Index n, const T* x, T* y, Index K) noexcept {
  using V = simd::Vec<T, I>;
  if (gates == nullptr || n <= 1) return scaled<T, I, add>(n == 1 && gates ? a * *gates : a, x, y, K);
  const V f = V::set(a);
  each_vector<V>(K, [&](Index i, Index w) {
    const V p = f * V::load(gates + i, w) * V::load(x + i, w);
    (add ? p + V::load(y + i, w) : p).store(y + i, w);
  });
}

/// One token of finish(): where its readers, its writers and their gradients are.
template <class T>
struct Token {
  const T *q, *x, *w;
  const T *read_q, *read_x, *write;
  const T *up, *up_x, *down;
};

template <class T, Isa I>
ISOMER_INLINE T chain_norm(const Rule& rule, const T* raw, T norm, T along, T* grad, Index K) {
  if (rule.l2norm) {
    scaled<T, I>(norm, grad, grad, K);
    scaled<T, I, true>(-norm * norm * along, raw, grad, K);
  }
  return along;
}

/// What token i adds to what passes through the gates, and the gradient of its own.
template <class T, Isa I>
void gate_row(const Tokens<T>& x, const Rule& rule, const Token<T>& t, const BackwardScratch<T>& b, Index i,
              const BackwardRows<T>& io) noexcept {
  using V = simd::Vec<T, I>;
  const Index K = x.K;
  const T* gates = x.log_decay.data + i * x.log_decay.stride;
  T* grad = io.log_decay.data ? io.log_decay.data + i * io.log_decay.stride : b.row;
  const V lowest = V::set(T(kForgets));
  each_vector<V>(K, [&](Index c, Index n) {
    const auto at = [&](const T* p) { return V::load(p + c, n); };
    V f = fma(at(t.q), at(t.read_q), at(b.flux));
    f = fnma(at(t.w), at(t.write), f);
    if (rule.low_rank)
      f = fnma(at(t.w + K), at(t.write + K), f);
    else
      f = fma(at(t.x), at(t.read_x), f);
    select(at(gates) < lowest, V::zero(), f).store(grad + c, n);
    if (rule.low_rank) f = fma(at(t.x), at(t.read_x), f);
    f.store(b.flux + c, n);
  });
}

/// Gradients of token i; returns what it adds to what passes through the head's gates.
template <class T, Isa I>
T finish_row(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const Token<T>& t, const BackwardScratch<T>& b, Index i,
             const BackwardRows<T>& io) noexcept {
  const Index K = x.K, V = x.V, n = rule.gates(K);
  const T *k = x.k.data + i * x.k.stride, *grad_u = b.grads + 2 * i * V;
  const auto row = [&](const Rows<T>& to) { return to.data ? to.data + i * to.stride : b.row; };
  // Norms and a head's gates ask how much of a gradient is along its row.
  const bool asked = rule.l2norm || rule.gate == Gate::head;
  const T along_q = asked ? dot<T, I>(t.q, t.read_q, K) : T(0), along_w = asked ? dot<T, I>(t.w, t.write, K) : T(0);
  T* grad = row(io.q);
  decayed<T, I>(T(rule.scale), t.up, n, t.read_q, grad, K);
  chain_norm<T, I>(rule, x.q.data + i * x.q.stride, m.norm_q[i], along_q, grad, K);
  if (rule.low_rank) {
    decayed<T, I>(T(1), t.up_x, n, t.read_x, row(io.a), K);
    decayed<T, I>(T(1), t.down, n, t.write + K, row(io.b), K);
    if (io.v.data) copy_row<T, I>(b.grad_z + 2 * i * V, nullptr, row(io.v), V);
    grad = row(io.k);
    decayed<T, I>(T(1), t.down, n, t.write, grad, K);
    return chain_norm<T, I>(rule, k, m.norm_k[i], along_w, grad, K);
  }
  const T along_x = asked ? dot<T, I>(t.x, t.read_x, K) : T(0);
  if (io.v.data) scaled<T, I>(m.beta[i], grad_u, row(io.v), V);
  decayed<T, I>(T(1), t.up, n, t.read_x, b.row, K);
  if (io.beta.data)
    io.beta.data[i * io.beta.stride] = dot<T, I>(grad_u, x.v.data + i * x.v.stride, V) - m.norm_k[i] * dot<T, I>(k, b.row, K);
  if (io.k.data) {
    grad = row(io.k);
    scaled<T, I>(-m.beta[i], b.row, grad, K);
    decayed<T, I, true>(T(1), t.down, n, t.write, grad, K);
    chain_norm<T, I>(rule, k, m.norm_k[i], along_w + along_x, grad, K);
  }
  return (along_q - along_w) + along_x;
}

/// b.flux = what passes through the gates at the chunk's end.
template <class T, Isa I>
void through_keys(const Tokens<T>& x, const T* after, const BackwardScratch<T>& b) noexcept {
  using V = simd::Vec<T, I>;
  const Index K = x.K;
  each_vector<V>(K, [&](Index a, Index n) {
    V even = V::zero(), odd = V::zero();
    for (Index c = 0; c < x.V; ++c) {
      const V more = V::load(after + c * K + a, n) * V::load(b.back_t + c * K + a, n);
      (c % 2 ? odd : even) = (c % 2 ? odd : even) + more;
    }
    (even + odd).store(b.flux + a, n);
  });
}

template <class T, Isa I>
void finish_rows(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const T* after, const BackwardScratch<T>& b,
                 const BackwardRows<T>& io) noexcept {
  const Index K = x.K, V = x.V, W = rule.writes(), n = rule.gates(K);
  double flux = rule.gate == Gate::head ? double(dot<T, I>(after, b.back_t, K * V)) : 0.0;
  if (rule.gate == Gate::key) through_keys<T, I>(x, after, b);
  const bool segments = *m.segments > 0;
  Index segment = segments ? *m.segments - 1 : 0;
  for (Index i = x.C; i-- > 0;) {
    const bool first = segments ? i == m.first[segment] : i == 0;
    if (first && segment > 0) --segment;
    const Token<T> t{.q = segments ? b.seg_q + i * K : m.q + i * m.stride,
                     .x = segments ? b.seg_x + i * K : m.x + i * m.stride,
                     .w = (segments ? b.seg_w : m.w) + W * i * K,
                     .read_q = b.reads + (2 * i + 1) * K,
                     .read_x = b.reads + 2 * i * K,
                     .write = b.write + W * i * K,
                     .up = m.up + i * n,
                     .up_x = up_of_x(rule, m, i, first, n),
                     .down = m.down + i * n};
    flux += double(finish_row<T, I>(x, rule, m, t, b, i, io));
    if (rule.gate == Gate::key) gate_row<T, I>(x, rule, t, b, i, io);
    if (rule.gate == Gate::head && io.log_decay.data)
      io.log_decay.data[i * io.log_decay.stride] = double(x.log_decay.data[i * x.log_decay.stride]) < kForgets ? T(0) : T(flux);
  }
}

/// sz: as forward() kept it.
template <class T, Isa I>
void finish_chunk(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s, const T* sz,
                  const T* after, const T* back, const BackwardScratch<T>& b, const BackwardRows<T>& io,
                  Prefetch<T, I>& prefetch) noexcept {
  using gemm::Store;
  const Index C = x.C, K = x.K, V = x.V, W = rule.writes(), N = W * C;
  const T* z = sz + K * V;
  gemm::transpose<T, I>(K, V, back, V, b.back_t, K);
  gemm::transpose<T, I>(N, V, z, V, b.z_t, N);
  gemm::multiply<T, I>(gemm::Full{}, 2 * C, K, V, {b.grads, V, 1}, sz, K, b.reads, K, Store::set, prefetch);
  gemm::multiply<T, I>(gemm::Full{}, N, K, V, {z, V, 1}, b.back_t, K, b.write, K, Store::set, prefetch);
  if (rule.gate != Gate::none && *m.segments == 0) decay_rows<T, I>(m.carry, rule.gates(K), b.write, N, K);
  gemm::multiply<T, I>(LowerOfC<2>{0, W}, 2 * C, N, V, {b.grads, V, 1}, b.z_t, N, b.pairs, N, Store::set, prefetch);
  for (Index i = 0; i < C; ++i) {
    clear_upper(b.pairs + 2 * i * N, W * i, W, N);
    clear_upper(b.pairs + (2 * i + 1) * N, W * (i + 1), W, N);
  }
  if (*m.segments > 0) {
    load_segments<T, I>(x, rule, m, b);
    read_segments<T, I>(x, rule, m, s, b);
    write_segments<T, I>(x, rule, m, b);
  } else {
    gemm::multiply<T, I>(LowerOfA<2>{0, W}, 2 * C, K, N, {b.pairs, N, 1}, m.w, K, b.reads, K, Store::add, prefetch);
    gemm::multiply<T, I>(UpperOfA<2>{W}, N, K, 2 * C, {b.pairs, 1, N}, m.x, m.row(), b.write, K, Store::add, prefetch);
  }
  finish_rows<T, I>(x, rule, m, after, b, io);
}

template <class T, Isa I>
void Kernels<T, I>::finish(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s, const T* sz,
                           const T* after, const T* back, const BackwardScratch<T>& b, const BackwardRows<T>& io) noexcept {
  Prefetch<T, I> nothing{{}};
  finish_chunk<T, I>(x, rule, m, s, sz, after, back, b, io, nothing);
}

template <class T, Isa I>
void Kernels<T, I>::backward(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s, const T* sz,
                             const T* after, T* back, const BackwardScratch<T>& b, const BackwardRows<T>& io) noexcept {
  Prefetch<T, I> prefetch{io.ahead};
  load_chunk<T, I>(x, rule, m, s, prefetch);
  backward_solve<T, I>(x, rule, m, b, io.grad_o, back, prefetch);
  finish_chunk<T, I>(x, rule, m, s, sz, after, back, b, io, prefetch);
  backward_write<T, I>(x, rule, m, b, back, prefetch);
}

}  // namespace isomer::delta_detail

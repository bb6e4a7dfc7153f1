#pragma once
// The chunk form, backward: see README.md for the derivation. For the translation units of one Isa.
#include "isomer/laws/delta/delta_gates_impl.h"

namespace isomer::delta_detail {

/// Rows i … i + rows − 1 of the gradients of z that belong to u, with the factors of unscaled rows also of u. b.grad_z has what
/// comes from the state after the chunk, before `carry`; to it come rows of dO and dU behind them and then, in registers, their
/// own.
template <class T, Isa I, int rows, int vectors, bool cut>
inline void backward_tile(const Tokens<T>& x, const Matrices<T>& m, const BackwardScratch<T>& b, Index W, T carry, Index i,
                          Index column, Index width) noexcept {
  using V = simd::Vec<T, I>;
  const auto left = [&](int v) { return cut ? width - v * V::lanes : V::lanes; };
  const Index last = 2 * x.C, step = m.row(), columns = x.V;
  // L(p, u of row i) = pairs[2 p step], P(p, …) = pairs[(2 p + 1) step]: rows alternate as those of grads do.
  const T *pairs = m.x + x.K + W * i + W - 1, *own = pairs + 2 * i * step;
  T *grads = b.grads + column, *grad_z = b.grad_z + (W * i + W - 1) * columns + column;
  V sum[rows][vectors];
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) sum[r][v] = V::set(carry) * V::load(grad_z + W * r * columns + v * V::lanes, left(v));
  for (Index p = 2 * (i + rows); p < last; ++p) {
    V row[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) row[v] = V::load(grads + p * columns + v * V::lanes, left(v));
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      const V f = V::set(pairs[p * step + W * r]);
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sum[r][v] = fma(f, row[v], sum[r][v]);
    }
  }
#pragma GCC unroll 6
  for (int r = rows - 1; r >= 0; --r) {
    const T turn = m.scale_x[i + r] * m.scale_w[i + r];
    const T *to_o = own + (2 * r + 1) * step, *to_u = own + 2 * r * step;
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      T* at = grads + 2 * (i + r) * columns + v * V::lanes;
      const V grad_o = V::load(at + columns, left(v));
#pragma GCC unroll 6
      for (int e = 0; e <= r; ++e) sum[e][v] = fma(V::set(to_o[W * e]), grad_o, sum[e][v]);
      (V::set(turn) * sum[r][v]).store(at, left(v));
      sum[r][v].store(grad_z + W * r * columns + v * V::lanes, left(v));
#pragma GCC unroll 6
      for (int e = 0; e < r; ++e) sum[e][v] = fma(V::set(turn * to_u[W * e]), sum[r][v], sum[e][v]);
    }
  }
}

template <class T, Isa I, int vectors, bool cut>
void backward_columns(const Tokens<T>& x, const Matrices<T>& m, const BackwardScratch<T>& b, Index W, T carry, Index column,
                      Index width) noexcept {
  Index i = x.C;
  for (; i >= gemm::kTileRows; i -= gemm::kTileRows)
    backward_tile<T, I, gemm::kTileRows, vectors, cut>(x, m, b, W, carry, i - gemm::kTileRows, column, width);
  for (; i > 0; --i) backward_tile<T, I, 1, vectors, cut>(x, m, b, W, carry, i - 1, column, width);
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
    if (grad_o.data) scaled<T, I>(m.scale_q[i], grad_o.data + i * grad_o.stride, to, V);
    for (Index c = 0; c < V && !grad_o.data; ++c) to[c] = 0;
  }
  // Scaled writers meet the gradient of the state before the carry, unscaled ones take it as a factor.
  const bool filled = rule.gate == Gate::key && m.whole();
  if (filled) carry_rows<T, I>(m.carry, back, b.back, K, V);
  const Rows<T> w = writers(rule, m, K);
  gemm::multiply<T, I>(gemm::Full{}, N, V, K, {w.data, w.stride, 1}, filled ? b.back : back, V, b.grad_z, V, Store::set,
                       prefetch);
  const T carry = unscaled(rule, m) ? *m.carry : T(1);
  Index c = 0;
  for (; c + 2 * lanes <= V; c += 2 * lanes) backward_columns<T, I, 2, false>(x, m, b, W, carry, c, 2 * lanes);
  for (; c < V; c += lanes) backward_columns<T, I, 1, true>(x, m, b, W, carry, c, V - c < lanes ? V - c : lanes);
  // Values of the low-rank rule are written, too.
  if (rule.low_rank)
    gemm::multiply<T, I>(UpperOfA<2>{1}, C, V, 2 * C, {m.x + K, W, m.row()}, b.grads, V, b.grad_z, W * V, Store::add, prefetch);
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

/// The gradients of normalised rows of token i, which have the factors of l2norm -> of q and k, in place. `along` is q·dq.
template <class T, Isa I>
void chain_norms(const Matrices<T>& m, Index i, const T* q, const T* k, T along, T* grad_q, T* grad_k, Index K) noexcept {
  scaled<T, I, true>(-m.norm_q[i] * m.norm_q[i] * along, q, grad_q, K);
  scaled<T, I, true>(-m.norm_k[i] * m.norm_k[i] * dot<T, I>(k, grad_k, K), k, grad_k, K);
}

/// Where the gradients of a token of the low-rank rule go.
template <class T>
struct LowRankRows {
  T *a, *b, *k;
};

/// Those of a and b, and what x of the next token reads of k: no gate stands between the two.
template <class T, Isa I>
void finish_low_rank(const Tokens<T>& x, const Matrices<T>& m, const Token<T>& t, const BackwardScratch<T>& b, Index i,
                     const LowRankRows<T>& to) noexcept {
  const Index K = x.K;
  const T *next = b.own + 2 * x.C + 2 * i, *before = next - 2;
  const auto row = [](const Rows<const T>& of, Index at) { return of.data + at * of.stride; };
  decayed<T, I>(T(1), t.up_x, K, t.read_x, to.a, K);
  if (i > 0) scaled<T, I, true>(before[0] * m.norm_k[i - 1], row(x.k, i - 1), to.a, K);
  if (i > 0) scaled<T, I, true>(before[1], row(x.b, i - 1), to.a, K);
  decayed<T, I>(T(1), t.down, K, t.write + K, to.b, K);
  if (i + 1 < x.C) scaled<T, I, true>(next[1], row(x.a, i + 1), to.b, K);
  if (i + 1 < x.C) scaled<T, I, true>(next[0] * m.norm_k[i], row(x.a, i + 1), to.k, K);
}

/// Gradients of token i, but for the gates.
template <class T, Isa I>
void finish_row(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const Token<T>& t, const BackwardScratch<T>& b,
                Index i, const BackwardRows<T>& io) noexcept {
  const Index K = x.K, V = x.V, n = rule.gates(K);
  const auto row = [&](const Rows<T>& to) { return to.data ? to.data + i * to.stride : b.row; };
  const T *k = x.k.data + i * x.k.stride, *grad_z = b.grad_z + rule.writes() * i * V;
  T *grad_q = io.q.data ? row(io.q) : b.row + K, *grad_k = row(io.k);
  if (io.v.data) copy_row<T, I>(grad_z, nullptr, row(io.v), V);
  decayed<T, I>(T(rule.scale) * m.norm_q[i], t.up, n, t.read_q, grad_q, K);
  decayed<T, I>(m.norm_k[i], t.down, n, t.write, grad_k, K);
  if (rule.low_rank) finish_low_rank<T, I>(x, m, t, b, i, {row(io.a), row(io.b), grad_k});
  if (!rule.low_rank) {
    if (io.beta.data) io.beta.data[i * io.beta.stride] = dot<T, I>(k, grad_k, K);
    scaled<T, I>(m.beta[i], grad_k, grad_k, K);
    decayed<T, I, true>(-m.norm_k[i], t.up, n, t.read_x, grad_k, K);
  }
  const T* q = x.q.data + i * x.q.stride;
  if (rule.l2norm) chain_norms<T, I>(m, i, q, k, dot<T, I>(q, grad_q, K), grad_q, grad_k, K);
}

/// The same of a token whose rows are unscaled. Sums are not in closures, which would hold them in memory.
template <class T, Isa I>
void finish_unscaled(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const T* z, const BackwardScratch<T>& b, Index i,
                     const BackwardRows<T>& io) noexcept {
  using Vec = simd::Vec<T, I>;
  const Index K = x.K, V = x.V;
  const T *q = m.q + i * m.stride, *k = m.x + i * m.stride;
  const T *grad_z = b.grad_z + i * V, *read_x = b.reads + 2 * i * K, *write = b.write + i * K;
  T *grad_q = io.q.data ? io.q.data + i * io.q.stride : b.row, *grad_k = io.k.data ? io.k.data + i * io.k.stride : b.row + K;
  const Vec scale_w = Vec::set(m.scale_w[i]);
  Vec along_q = Vec::zero(), along_z = Vec::zero();
  for (Index c = 0; c < V; c += Vec::lanes) {
    const Vec grad = Vec::load(grad_z + c, V - c);
    along_z = fma(grad, Vec::load(z + i * V + c, V - c), along_z);
    if (io.v.data) (scale_w * grad).store(io.v.data + i * io.v.stride + c, V - c);
  }
  for (Index a = 0; a < K; a += Vec::lanes) {
    const Vec grad = Vec::load(read_x + K + a, K - a);
    along_q = fma(Vec::load(q + a, K - a), grad, along_q);
    grad.store(grad_q + a, K - a);
    (Vec::load(read_x + a, K - a) + Vec::load(write + a, K - a)).store(grad_k + a, K - a);
  }
  const T down = rule.gate == Gate::head ? m.down[i] : T(1);
  if (io.beta.data) io.beta.data[i * io.beta.stride] = m.norm_k[i] * down * sum(along_z);
  if (rule.l2norm) chain_norms<T, I>(m, i, q, k, sum(along_q), grad_q, grad_k, K);
}

template <class T, Isa I>
void finish_rows(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const T* z, const BackwardScratch<T>& b,
                 const BackwardRows<T>& io) noexcept {
  const Index K = x.K, W = rule.writes(), n = rule.gates(K);
  const bool segments = !m.whole();
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
    if (rule.gate == Gate::key) {
      gate_row<T, I>(x, rule, t, b, i, io);
      add_own<T, I>(rule, t, b, i, K);
    }
    if (unscaled(rule, m))
      finish_unscaled<T, I>(x, rule, m, z, b, i, io);
    else
      finish_row<T, I>(x, rule, m, t, b, i, io);
  }
}

/// Pairs of unscaled rows take the factors of the writers, which z has not, and are nothing beyond the diagonal. Returns what
/// becomes of the gradients of writers that came from the state after the chunk: they take these factors and the carry.
template <class T, Isa I>
gemm::Into<T> scale_pairs(const Matrices<T>& m, const BackwardScratch<T>& b, Index C) noexcept {
  using V = simd::Vec<T, I>;
  for (Index i = 0; i < 2 * C; ++i) {
    T* row = b.pairs + i * b.stride;
    const Index count = i / 2 + i % 2;
    for (Index p = 0; p < C; p += V::lanes) (V::load(m.scale_w + p, count - p) * V::load(row + p, count - p)).store(row + p);
  }
  for (Index p = 0; p < C; ++p) b.keep[p] = *m.carry * m.scale_w[p];
  return gemm::Into<T>(b.keep);
}

/// The same of scaled rows, which have their factors.
template <class T, Isa I>
gemm::Into<T> clear_pairs(const Rule& rule, const Matrices<T>& m, const BackwardScratch<T>& b, Index C, Index K) noexcept {
  const Index W = rule.writes();
  for (Index i = 0; i < 2 * C; ++i) clear_upper<T, I>(b.pairs + i * b.stride, W * (i / 2 + i % 2), W, W * C);
  if (m.whole()) decay_rows<T, I>(m.carry, K, b.write, W * C, K);
  return gemm::Store::add;
}

/// sz: as forward() kept it.
template <class T, Isa I>
void finish_chunk(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s, const T* sz, const T* back,
                  const BackwardScratch<T>& b, const BackwardRows<T>& io, Prefetch<T, I>& prefetch) noexcept {
  using gemm::Store;
  const Index C = x.C, K = x.K, V = x.V, W = rule.writes(), N = W * C, P = b.stride;
  const T* z = sz + K * V;
  gemm::transpose<T, I>(K, V, back, V, b.back_t, K);
  gemm::transpose<T, I>(N, V, z, V, b.z_t, P);
  gemm::multiply<T, I>(LowerOfC<2>{0, W}, 2 * C, whole_vectors<T, I>(N), V, {b.grads, V, 1}, b.z_t, P, b.pairs, P, Store::set,
                       prefetch);
  gemm::multiply<T, I>(gemm::Full{}, 2 * C, K, V, {b.grads, V, 1}, sz, K, b.reads, K, Store::set, prefetch);
  gemm::multiply<T, I>(gemm::Full{}, N, K, V, {z, V, 1}, b.back_t, K, b.write, K, Store::set, prefetch);
  const gemm::Into<T> into = unscaled(rule, m) ? scale_pairs<T, I>(m, b, C) : clear_pairs<T, I>(rule, m, b, C, K);
  if (rule.gate == Gate::head && io.log_decay.data)
    head_gates<T, I>(x, m, writers(rule, m, K), unscaled(rule, m) ? b.keep : nullptr, sz, b, io.log_decay);
  if (rule.gate == Gate::key) {
    key_gates_at_end<T, I>(x, m, W, sz, b);
    take_own<T, I>(rule, b, C);
  }
  if (!m.whole()) {
    load_segments<T, I>(x, rule, m, b);
    read_segments<T, I>(x, rule, m, s, b);
    write_segments<T, I>(x, rule, m, b);
  } else {
    const Rows<T> w = writers(rule, m, K);
    gemm::multiply<T, I>(LowerOfA<2>{0, W}, 2 * C, K, N, {b.pairs, P, 1}, w.data, w.stride, b.reads, K, Store::add, prefetch);
    gemm::multiply<T, I>(UpperOfA<2>{W}, N, K, 2 * C, {b.pairs, 1, P}, m.x, m.row(), b.write, K, into, prefetch);
  }
  finish_rows<T, I>(x, rule, m, z, b, io);
}

template <class T, Isa I>
void Kernels<T, I>::finish(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s, const T* sz,
                           const T* back, const BackwardScratch<T>& b, const BackwardRows<T>& io) noexcept {
  Prefetch<T, I> nothing{{}};
  finish_chunk<T, I>(x, rule, m, s, sz, back, b, io, nothing);
}

template <class T, Isa I>
void Kernels<T, I>::backward(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s, const T* sz,
                             T* back, const BackwardScratch<T>& b, const BackwardRows<T>& io) noexcept {
  Prefetch<T, I> prefetch{io.ahead};
  load_chunk<T, I>(x, rule, m, s, prefetch);
  backward_solve<T, I>(x, rule, m, b, io.grad_o, back, prefetch);
  finish_chunk<T, I>(x, rule, m, s, sz, back, b, io, prefetch);
  backward_write<T, I>(x, rule, m, b, back, prefetch);
}

}  // namespace isomer::delta_detail

#pragma once
// The chunk form, forward: see README.md for the derivation. For the translation units of one Isa.
#include "isomer/laws/delta/delta_load_impl.h"

namespace isomer::delta_detail {

/// Rows i … i + rows − 1 of u in one tile of columns. The product with the state and with earlier writes is as in gemm; the rows
/// of the tile then depend on each other, and are solved where they are, in registers.
template <class T, Isa I, int rows, int vectors, bool cut, bool low_rank>
inline void solve_tile(const Tokens<T>& x, const Matrices<T>& m, T* sz, Index i, Index column, Index width) noexcept {
  using V = simd::Vec<T, I>;
  constexpr Index W = low_rank ? 2 : 1;
  const auto left = [&](int v) { return cut ? width - v * V::lanes : V::lanes; };
  V sum[rows][vectors];
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) sum[r][v] = V::zero();
  const T* a = m.x + i * m.stride;
  const T* b = sz + column;
  for (Index n = x.K + W * i; n > 0; --n) {
    V row[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) row[v] = V::load(b + v * V::lanes, left(v));
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      const V f = V::set(a[r * m.stride]);
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sum[r][v] = fma(f, row[v], sum[r][v]);
    }
    ++a;
    b += x.V;
  }
  T* z = sz + (x.K + W * i) * x.V + column;
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) {
    const T* given = x.v.data + (i + r) * x.v.stride + column;
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      const V y = V::load(given + v * V::lanes, left(v));
      if (!low_rank) sum[r][v] = fma(V::set(m.beta[i + r]), y, sum[r][v]);
#pragma GCC unroll 6
      for (int later = r + 1; later < rows; ++later) {
        const T* l = a + later * m.stride + W * r;
        if (low_rank) sum[later][v] = fma(V::set(l[0]), y, sum[later][v]);
        sum[later][v] = fma(V::set(l[W - 1]), sum[r][v], sum[later][v]);
      }
      if (low_rank) y.store(z + W * r * x.V + v * V::lanes, left(v));
      sum[r][v].store(z + (W * r + W - 1) * x.V + v * V::lanes, left(v));
    }
  }
}

template <class T, Isa I, int vectors, bool cut, bool low_rank>
void solve_columns(const Tokens<T>& x, const Matrices<T>& m, T* sz, Index column, Index width) noexcept {
  Index i = 0;
  for (; i + gemm::kTileRows <= x.C; i += gemm::kTileRows)
    solve_tile<T, I, gemm::kTileRows, vectors, cut, low_rank>(x, m, sz, i, column, width);
  for (; i < x.C; ++i) solve_tile<T, I, 1, vectors, cut, low_rank>(x, m, sz, i, column, width);
}

template <class T, Isa I, bool low_rank>
void solve_all(const Tokens<T>& x, const Matrices<T>& m, T* sz) noexcept {
  constexpr Index lanes = simd::Vec<T, I>::lanes;
  Index c = 0;
  for (; c + 2 * lanes <= x.V; c += 2 * lanes) solve_columns<T, I, 2, false, low_rank>(x, m, sz, c, 2 * lanes);
  for (; c < x.V; c += lanes) solve_columns<T, I, 1, true, low_rank>(x, m, sz, c, x.V - c < lanes ? x.V - c : lanes);
}

template <class T, Isa I>
void Kernels<T, I>::solve(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, T* sz) noexcept {
  if (rule.low_rank)
    solve_all<T, I, true>(x, m, sz);
  else
    solve_all<T, I, false>(x, m, sz);
}

/// Row a of [K, V] times carry(a).
template <class T, Isa I>
ISOMER_INLINE void carry_rows(const T* carry, const T* from, T* to, Index K, Index V) {
  for (Index a = 0; a < K; ++a) scaled<T, I>(carry[a], from + a * V, to + a * V, V);
}

/// `carried`: the writers are at the chunk's end; else the state is carried there with what they add.
template <class T, Isa I>
void advance_chunk(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, T* sz, Rows<T> o, bool carried,
                   Prefetch<T, I>& prefetch) noexcept {
  const Index K = x.K, V = x.V, W = rule.writes(), N = W * x.C;
  if (o.data)
    gemm::multiply<T, I>(LowerOfA<1>{K, W}, x.C, V, K + N, {m.q, m.stride, 1}, sz, V, o.data, o.stride, gemm::Store::set,
                         prefetch);
  const gemm::Into<T> into = carried ? gemm::Into<T>(m.carry) : gemm::Into<T>(gemm::Store::add);
  gemm::multiply<T, I>(gemm::Full{}, K, V, N, {m.w, 1, K}, sz + K * V, V, sz, V, into, prefetch);
  if (!carried && rule.gate != Gate::none) carry_rows<T, I>(m.carry, sz, sz, K, V);
}

template <class T, Isa I>
void Kernels<T, I>::advance(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, T* sz, Rows<T> o,
                            const Ahead<T>& ahead) noexcept {
  Prefetch<T, I> prefetch{ahead};
  advance_chunk<T, I>(x, rule, m, sz, o, *m.segments > 0, prefetch);
}

}  // namespace isomer::delta_detail

#pragma once
// Some tokens at a time through a state [K,V], one pass over it for each group of them: what a group writes is added to a row of
// the state, and what the next group reads is taken from that row while it is in registers. Between passes a law works out the
// group's outputs and what it writes. No more flops than the recurrence has, where a chunk also multiplies its tokens with each
// other; a group's own pairs are a few dot products. A slice of columns stays in L1 over all groups of a chunk.
// For the translation units of one Isa; include vec_<isa>.h first.
#include "isomer/laws/chunk_rows_impl.h"

namespace isomer::chunk {

/// Vectors of a slice: two, so that each element of a token, which is broadcast, meets two.
inline constexpr int kSliceVectors = 2;

/// Tokens of a group where each reads and writes once. Their sums and values, two vectors each, and a row of the state fill 18 of
/// the 32 registers of AVX-512; more tokens have more pairs. AVX2 has 16 registers: 14, and one for what is broadcast.
template <Isa I>
inline constexpr int kWalkGroup = I == Isa::avx512 ? 4 : 3;

/// Columns of a state; `width` of them are there, and only where `cut` is it less than the vectors hold.
template <class T, Isa I, int count, bool cut>
struct StateSlice {
  using V = simd::Vec<T, I>;
  T* state;
  Index stride, K, width;

  [[nodiscard]] ISOMER_INLINE Index left(int v) const { return cut ? width - v * V::lanes : V::lanes; }
  ISOMER_INLINE void load(const T* from, V (&to)[count]) const {
#pragma GCC unroll 2
    for (int v = 0; v < count; ++v) to[v] = V::load(from + v * V::lanes, left(v));
  }
  ISOMER_INLINE void store(const V (&from)[count], T* to) const {
#pragma GCC unroll 2
    for (int v = 0; v < count; ++v) from[v].store(to + v * V::lanes, left(v));
  }
  /// write(a, row) may change a row of the state, read(a, row) sees what became of it.
  template <bool stores, class Write, class Read>
  ISOMER_INLINE void pass(Write&& write, Read&& read) const {
    const Index rows = K, step = stride;
    T* at = state;
    for (Index a = 0; a < rows; ++a, at += step) {
      V row[count];
      load(at, row);
      write(a, row);
      if constexpr (stores) store(row, at);
      read(a, row);
    }
  }
};

/// f.operator()<vectors, cut>(c) for the slices of V columns, c their first.
template <class T, Isa I, class F>
ISOMER_INLINE void each_slice(Index V, F&& f) {
  constexpr Index lanes = simd::Vec<T, I>::lanes;
  Index c = 0;
  for (; c + kSliceVectors * lanes <= V; c += kSliceVectors * lanes) f.template operator()<kSliceVectors, false>(c);
  for (; c < V; c += lanes) f.template operator()<1, true>(c);
}

/// Groups of R tokens in all slices of a chunk: so often memory can be prefetched.
template <class T, Isa I>
ISOMER_INLINE Index groups_of(Index C, Index V, Index R) {
  return ceil_div(C, R) * ceil_div(V, kSliceVectors * simd::Vec<T, I>::lanes);
}

template <int n, class V, int most, int count>
ISOMER_INLINE void clear(V (&sum)[most][count]) {
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i)
#pragma GCC unroll 2
    for (int c = 0; c < count; ++c) sum[i][c] = V::zero();
}

/// sum += Σ_j pairs(j) z_j over n tokens of a group.
template <class T, class V, int most, int count>
ISOMER_INLINE void add_pairs(const T* pairs, int n, const V (&z)[most][count], V (&sum)[count]) {
#pragma GCC unroll 4
  for (int j = 0; j < n; ++j) {
    const V pair = V::set(pairs[j]);
#pragma GCC unroll 2
    for (int c = 0; c < count; ++c) sum[c] = fma(pair, z[j][c], sum[c]);
  }
}

/// row += Σ_j w_j(a) z_j over n rows of w.
template <int n, class T, class V, int most, int count>
ISOMER_INLINE void write_rows(Rows<const T> w, Index a, const V (&z)[most][count], V (&row)[count]) {
#pragma GCC unroll 8
  for (int j = 0; j < n; ++j) {
    const V f = V::set(w.data[j * w.stride + a]);
#pragma GCC unroll 2
    for (int v = 0; v < count; ++v) row[v] = fma(f, z[j][v], row[v]);
  }
}

/// sum_i += r_i(a) row over n rows of r.
template <int n, class T, class V, int most, int count>
ISOMER_INLINE void read_rows(Rows<const T> r, Index a, const V (&row)[count], V (&sum)[most][count]) {
#pragma GCC unroll 8
  for (int i = 0; i < n; ++i) {
    const V f = V::set(r.data[i * r.stride + a]);
#pragma GCC unroll 2
    for (int v = 0; v < count; ++v) sum[i][v] = fma(f, row[v], sum[i][v]);
  }
}

/// The last group, of `rest` ≤ n tokens from i on. What the `before` tokens in front of it write is still to be written; 0: there
/// are none.
template <int before, int n, class Walk>
ISOMER_INLINE void walk_rest(Walk& walk, Index i, Index rest) {
  if constexpr (n == 0) {
    walk.template pass<before, 0>(i - before);
  } else {
    if (rest < n) return walk_rest<before, n - 1>(walk, i, rest);
    if constexpr (before == 0)
      walk.template enter<n>(i);
    else
      walk.template pass<before, n>(i - before);
    walk.template finish<n>(i);
    walk.template pass<n, 0>(i);
  }
}

/// Tokens [begin, end), at least one, in groups of R; the last group has the rest. walk.enter<n>(i) reads the state for the first
/// group, finish<n>(i) has a group's sums and makes its outputs and what it writes, pass<n, m>(i) writes that of n tokens and
/// reads for the m after them. What a token computes depends on where its group begins, not on where it ends.
template <int R, class Walk>
ISOMER_INLINE void walk_groups(Walk& walk, Index begin, Index end) {
  const Index rest = (end - begin) % R, whole = end - rest;
  if (begin == whole) return walk_rest<0, R - 1>(walk, begin, rest);
  walk.template enter<R>(begin);
  for (Index i = begin; i < whole - R; i += R) {
    walk.template finish<R>(i);
    walk.template pass<R, R>(i);
  }
  walk.template finish<R>(whole - R);
  walk_rest<R, R - 1>(walk, whole, rest);
}

}  // namespace isomer::chunk

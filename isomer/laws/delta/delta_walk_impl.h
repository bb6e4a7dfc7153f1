#pragma once
// The chunk form, forward, of a head whose chunks come one after the other: a few tokens at a time through the state
// (state_pass_impl.h, README.md). For the translation units of one Isa.
#include "isomer/laws/delta/delta_load_impl.h"
#include "isomer/laws/state_pass_impl.h"

namespace isomer::delta_detail {

/// Tokens of a group: the sums of their two readers, what they write and a row of the state, two vectors of each, stay in
/// registers: 26 of 32 of AVX-512, low rank 18; AVX2 14 of 16, low rank 10.
template <Isa I, bool low_rank>
inline constexpr int kGroup = I == Isa::avx512 ? (low_rank ? 2 : 4) : (low_rank ? 1 : 2);

/// The rows that the tokens of a chunk read and write with, as they are in memory or, with a decay for each key, in the scratch;
/// `b` is the second writer of the low-rank rule.
template <class T>
struct WalkRows {
  Rows<const T> x, q, w, b;
};

/// A segment of a chunk (README.md) as it goes through the state.
template <class T>
struct Span {
  Index begin, end;
  const T* carry;  // [K] decay from its beginning to its end
  Index early;     // low rank: the token that read the state before the decay of its segment's first token; −1: none
};

template <class T, Isa I, int count, bool cut, bool low_rank>
struct SliceWalk {
  using V = simd::Vec<T, I>;
  static constexpr int R = kGroup<I, low_rank>;
  static constexpr Index W = low_rank ? 2 : 1;
  const Tokens<T>& x;
  const Matrices<T>& m;
  const LoadScratch<T>& s;
  const WalkRows<T>& rows;
  const Span<T>& span;
  chunk::StateSlice<T, I, count, cut> slice;
  Index column;
  Rows<T> kept;  // z of the chunk; null: nobody wants it
  Rows<T> o;
  Prefetch<T, I>& prefetch;
  V read_x[R][count], read_q[R][count], z[R][count], v[low_rank ? R : 1][count];

  [[nodiscard]] ISOMER_INLINE static Rows<const T> from(Rows<const T> all, Index i) {
    return {all.data + i * all.stride, all.stride};
  }
  template <int n>
  ISOMER_INLINE void enter(Index i) {
    // Rows are locals: stores of vectors may alias what is read through a structure.
    const Rows<const T> by_x = from(rows.x, i), by_q = from(rows.q, i);
    chunk::clear<n>(read_x);
    chunk::clear<n>(read_q);
    slice.template pass<false>([](Index, V(&)[count]) {},
                               [&](Index a, const V(&row)[count]) {
                                 chunk::read_rows<n>(by_x, a, row, read_x);
                                 chunk::read_rows<n>(by_q, a, row, read_q);
                               });
  }
  /// sum += Σ pairs(p) · what token p of the group wrote, over p < tokens.
  ISOMER_INLINE void add_group(const T* pairs, int tokens, V (&sum)[count]) const {
    if constexpr (low_rank) chunk::add_pairs(pairs + R, tokens, v, sum);
    chunk::add_pairs(pairs, tokens, z, sum);
  }
  template <int n>
  ISOMER_INLINE void finish(Index first) {
#pragma GCC unroll 4
    for (int i = 0; i < n; ++i) {
      const Index t = first + i;
      V given[count];
      slice.load(x.v.data + t * x.v.stride + column, given);
      add_group(m.x + t * m.stride + x.K, i, read_x[i]);
      const V scale_x = V::set(m.scale_x[t]), scale_w = V::set(m.scale_w[t]), scale_q = V::set(m.scale_q[t]);
      T* to = kept.data ? kept.data + W * t * kept.stride + column : nullptr;
      if constexpr (low_rank) {
        if (t == span.early) {
          V before[count];
          slice.load(s.before + column, before);
#pragma GCC unroll 2
          for (int c = 0; c < count; ++c) read_x[i][c] = read_x[i][c] + before[c];
        }
#pragma GCC unroll 2
        for (int c = 0; c < count; ++c) {
          v[i][c] = given[c];
          z[i][c] = read_x[i][c];
        }
        if (to) slice.store(given, to);
        if (to) slice.store(z[i], to + kept.stride);
      } else {
        V u[count];
#pragma GCC unroll 2
        for (int c = 0; c < count; ++c) u[c] = fma(scale_x, read_x[i][c], given[c]);
        if (to) slice.store(u, to);
#pragma GCC unroll 2
        for (int c = 0; c < count; ++c) z[i][c] = scale_w * u[c];
      }
      add_group(m.q + t * m.stride + x.K, i + 1, read_q[i]);
#pragma GCC unroll 2
      for (int c = 0; c < count; ++c) read_q[i][c] = scale_q * read_q[i][c];
      if (o.data) slice.store(read_q[i], o.data + t * o.stride + column);
    }
    prefetch();
  }
  template <int n, int next>
  ISOMER_INLINE void pass(Index i) {
    const Rows<const T> of_u = from(low_rank ? rows.b : rows.w, i), of_v = from(rows.w, i);
    const Rows<const T> by_x = from(rows.x, i + n), by_q = from(rows.q, i + n);
    const T* carry = span.carry;
    chunk::clear<next>(read_x);
    chunk::clear<next>(read_q);
    slice.template pass<true>(
        [&](Index a, V(&row)[count]) {
          if constexpr (low_rank) chunk::write_rows<n>(of_v, a, v, row);
          chunk::write_rows<n>(of_u, a, z, row);
          if constexpr (next == 0) {
            const V end = V::set(carry[a]);
#pragma GCC unroll 2
            for (int c = 0; c < count; ++c) row[c] = end * row[c];
          }
        },
        [&](Index a, const V(&row)[count]) {
          chunk::read_rows<next>(by_x, a, row, read_x);
          chunk::read_rows<next>(by_q, a, row, read_q);
        });
  }
};

/// x_i · w and q_i · w over the writes of u, and then of v, by the tokens of i's group before i and, of q, by i: where L and P
/// are in a row of a chunk.
template <class T, Isa I, bool low_rank>
void multiply_groups(const Tokens<T>& x, const Matrices<T>& m, const WalkRows<T>& rows, const Span<T>& span) noexcept {
  constexpr Index R = kGroup<I, low_rank>;
  const auto multiply = [&](Rows<const T> writers, Index place) {
    for (Index i = span.begin; i < span.end; ++i) {
      const Index first = i - (i - span.begin) % R;
      T *pairs_x = m.x + i * m.stride + x.K + place, *pairs_q = m.q + i * m.stride + x.K + place;
      for (Index p = first; p <= i; ++p) {
        const T* w = writers.data + p * writers.stride;
        if (p < i) pairs_x[p - first] = dot<T, I>(rows.x.data + i * rows.x.stride, w, x.K);
        pairs_q[p - first] = dot<T, I>(rows.q.data + i * rows.q.stride, w, x.K);
      }
    }
  };
  multiply(low_rank ? rows.b : rows.w, 0);
  if (low_rank) multiply(rows.w, R);
}

/// The decay at the beginning of a segment. Low rank: its first token pairs_q before it, so that this part of its u is kept, and
/// its reader then is nothing.
template <class T, Isa I>
void enter_segment(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s, Index begin,
                   T* state) noexcept {
  const Index n = rule.gates(x.K);
  T* reader = m.x + begin * m.stride;
  for (Index c = 0; c < x.V && rule.low_rank; ++c) s.before[c] = 0;
  for (Index a = 0; a < x.K; ++a) {
    if (rule.low_rank) scaled<T, I, true>(reader[a], state + a * x.V, s.before, x.V);
    scaled<T, I>(gate_at(m.entry + begin * n, n, a), state + a * x.V, state + a * x.V, x.V);
    if (rule.low_rank) reader[a] = 0;
  }
}

template <class T, Isa I, bool low_rank>
void walk_span(const Tokens<T>& x, const Matrices<T>& m, const LoadScratch<T>& s, const WalkRows<T>& rows, const Span<T>& span,
               T* state, Rows<T> kept, Rows<T> o, Prefetch<T, I>& prefetch) noexcept {
  multiply_groups<T, I, low_rank>(x, m, rows, span);
  chunk::each_slice<T, I>(x.V, [&]<int count, bool cut>(Index c) {
    SliceWalk<T, I, count, cut, low_rank> walk{x,        m,  s,  rows, span, {state + c, x.V, x.K, x.V - c}, c, kept, o,
                                               prefetch, {}, {}, {},   {}};
    chunk::walk_groups<kGroup<I, low_rank>>(walk, span.begin, span.end);
  });
}

/// Where the rows of a chunk are: in memory, unscaled, or in the scratch, when each key has its decay.
template <class T, Isa I>
WalkRows<T> walk_rows(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m) noexcept {
  load_factors(x, rule, m, rule.gate != Gate::key);
  if (rule.gate != Gate::key) return {x.k, x.q, x.k, {nullptr, 0}};
  fill_rows<T, I>(x, rule, m);
  const Index w = rule.writes() * x.K;
  return {{m.x, m.stride}, {m.q, m.stride}, {m.w, w}, {m.w + x.K, w}};
}

template <class T, Isa I>
void Kernels<T, I>::forward(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s, T* state,
                            const Kept<T>& kept, Rows<T> o, const PrefetchList<T>& ahead) noexcept {
  const Index K = x.K, n = rule.gates(K);
  const Index group = rule.low_rank ? kGroup<I, true> : kGroup<I, false>;
  Prefetch<T, I> prefetch = chunk::spread<T, I>(ahead, chunk::groups_of<T, I>(x.C, x.V, group));
  scan_chunk<T, I>(x, rule, m, s);
  const WalkRows<T> rows = walk_rows<T, I>(x, rule, m);
  if (kept.state_t) gemm::transpose<T, I>(K, x.V, state, x.V, kept.state_t, K);
  for (Index g = 0; g < *m.segments; ++g) {
    const Index begin = m.first[g], end = m.first[g + 1];
    const bool decays = g > 0 || !*m.from_edge;
    if (decays) enter_segment<T, I>(x, rule, m, s, begin, state);
    for (Index a = 0; a < K; ++a) m.carry[a] = n == 0 ? T(1) : gate_at(m.up + (end - 1) * n, n, a);
    const Span<T> span{begin, end, m.carry, decays ? begin : -1};
    if (rule.low_rank)
      walk_span<T, I, true>(x, m, s, rows, span, state, kept.z, o, prefetch);
    else
      walk_span<T, I, false>(x, m, s, rows, span, state, kept.z, o, prefetch);
  }
}

}  // namespace isomer::delta_detail

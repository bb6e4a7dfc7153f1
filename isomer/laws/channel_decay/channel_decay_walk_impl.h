#pragma once
// The chunk form, forward, of heads whose chunks come one after the other: a few tokens at a time through the state
// (state_pass_impl.h, README.md). For the translation units of one Isa.
#include "isomer/laws/channel_decay/channel_decay_chunk_impl.h"
#include "isomer/laws/state_pass_impl.h"

namespace isomer::channel_decay_detail {

template <class T, Isa I, int count, bool cut>
struct SliceWalk {
  using V = simd::Vec<T, I>;
  static constexpr int R = chunk::kWalkGroup<I>;
  static_assert(R >= kSmallestGroup);
  const Tokens<T>& x;
  const Scratch<T>& s;
  chunk::StateSlice<T, I, count, cut> slice;
  const T* v;  // the slice's columns
  Rows<T> o;
  Prefetch<T, I>& prefetch;
  V sum[R][count], values[R][count];

  [[nodiscard]] ISOMER_INLINE Rows<const T> row(const T* rows, Index i) const { return {rows + i * row_of(x.K), row_of(x.K)}; }
  template <int n>
  ISOMER_INLINE void enter(Index i) {
    chunk::clear<n>(sum);
    const Rows<const T> q = row(s.q_block, i);
    slice.template pass<false>([](Index, V(&)[count]) {},
                               [&](Index a, const V(&state)[count]) { chunk::read_rows<n>(q, a, state, sum); });
  }
  template <int n>
  ISOMER_INLINE void finish(Index first) {
#pragma GCC unroll 4
    for (int i = 0; i < n; ++i) {
      const Index t = first + i;
      slice.load(v + t * x.v.stride, values[i]);
      chunk::add_pairs(s.qw + t * s.qw_stride + x.K + first, i + 1, values, sum[i]);
      slice.store(sum[i], o.data + t * o.stride);
    }
    prefetch();
  }
  template <int n, int m>
  ISOMER_INLINE void pass(Index i) {
    chunk::clear<m>(sum);
    const T* decay = s.block_decay + i / R * row_of(x.K);
    const Rows<const T> k = row(s.k_block, i), q = row(s.q_block, i + n);
    slice.template pass<true>(
        [&](Index a, V(&state)[count]) {
          const V f = V::set(decay[a]);
#pragma GCC unroll 2
          for (int c = 0; c < count; ++c) state[c] = f * state[c];
          chunk::write_rows<n>(k, a, values, state);
        },
        [&](Index a, const V(&state)[count]) { chunk::read_rows<m>(q, a, state, sum); });
  }
};

/// Queries with the decays since their group began, keys with those until it ends, its own decay, and its pairs.
template <class T, Isa I, bool before, bool whole>
void load_groups(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s) noexcept {
  constexpr Index R = chunk::kWalkGroup<I>;
  for (Index begin = 0; begin < x.C; begin += R) {
    const Index end = begin + R < x.C ? begin + R : x.C;
    load_keys<T, I, whole>(x, s, begin, end, s.block_decay + begin / R * row_of(x.K));
    load_queries<T, I, before, whole, false>(x, rule, s, begin, end, nullptr);
    weigh_block<T, I, before>(rule, s, x.K, end, begin, end - begin);
  }
}

template <class T, Isa I>
void Kernels<T, I>::walk(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s, T* state, Rows<T> o,
                         const PrefetchList<T>& ahead) noexcept {
  const bool whole = x.K == padded(x.K);
  if (rule.before)
    whole ? load_groups<T, I, true, true>(x, rule, s) : load_groups<T, I, true, false>(x, rule, s);
  else
    whole ? load_groups<T, I, false, true>(x, rule, s) : load_groups<T, I, false, false>(x, rule, s);
  Prefetch<T, I> prefetch = chunk::spread<T, I>(ahead, chunk::groups_of<T, I>(x.C, x.V, chunk::kWalkGroup<I>));
  chunk::each_slice<T, I>(x.V, [&]<int count, bool cut>(Index c) {
    SliceWalk<T, I, count, cut> walk{x,  s, {state + c, x.V, x.K, x.V - c}, x.v.data + c, {o.data + c, o.stride}, prefetch,
                                     {}, {}};
    chunk::walk_groups<chunk::kWalkGroup<I>>(walk, 0, x.C);
  });
}

}  // namespace isomer::channel_decay_detail

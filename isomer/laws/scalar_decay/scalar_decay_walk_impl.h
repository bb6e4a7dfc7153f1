#pragma once
// The chunk form, forward, of heads whose chunks come one after the other, but for `subtract`: a few tokens at a time through the
// state (state_pass_impl.h, README.md). For the translation units of one Isa.
#include "isomer/laws/scalar_decay/scalar_decay_chunk_impl.h"
#include "isomer/laws/state_pass_impl.h"

namespace isomer::scalar_decay_detail {

/// Tokens whose decays are products of one to the beginning of the segment and one from it.
template <class T>
struct Segment {
  Index end;
  T rescale, carry;  // factor of the state where the segment begins, and its decay from there to the end
  double max;        // stabiliser of the state at its end
};

/// The segment from `begin` on, and the factors of its tokens: from_state (with the scale), at_edge and, stabilised, one. Which
/// tokens belong to it depends on those before them alone. The first may have any gates: it rescales the
/// state to its own scale, unless it is the chunk's first and small enough to continue from the edge.
template <class T, Isa I>
Segment<T> scan_segment(const Tokens<T>& x, const Rule& rule, const Gates<T>& g, Index begin, double max) noexcept {
  constexpr double largest = sizeof(T) == 4 ? 88 : 709;
  const auto decay = [&](Index i) { return x.log_decay.data ? double(x.log_decay.data[i * x.log_decay.stride]) : 0.0; };
  const auto input = [&](Index i) { return x.log_input.data ? double(x.log_input.data[i * x.log_input.stride]) : 0.0; };
  // Stabilised, an output's factor over its divisor is e^(sum + scale) at least.
  const auto fits = [&](double sum, double column, double scale) {
    return (rule.stabilised ? sum + scale >= kSmallest<T> : std::abs(sum) <= kFactors) && std::abs(column) <= kFactors;
  };
  const double first = decay(begin), kept = first + max;
  const bool continues = begin == 0 && fits(first, input(0) - kept, max);
  const double scale = continues ? max : !rule.stabilised ? 0.0 : kept > input(begin) ? kept : input(begin);
  double sum = 0.0, next = continues ? first : 0.0, top = 0.0;
  Index end = begin;
  do {
    sum = next;
    const double column = input(end) - sum - scale;
    if (rule.stabilised && column > top) top = column;
    const double row = rule.stabilised ? -top : sum, floor = -(sum + scale + top);
    g.from_state[end] = T(row);
    g.from_state_lo[end] = T(row - double(g.from_state[end]));
    g.at_edge[end] = T(column);
    g.at_edge_lo[end] = T(column - double(g.at_edge[end]));
    g.one[end] = T(floor < largest ? floor : largest);
    next = ++end < x.C ? sum + decay(end) : 0.0;
  } while (end < x.C && fits(next, input(end) - next - scale, scale));
  const double after = rule.stabilised ? double(T(sum + scale + top)) : 0.0;
  return {end, continues ? T(1) : T(::exp(kept - scale)), T(::exp(sum + scale - after)), after};
}

template <class T, Isa I>
void exponentials(const Rule& rule, const Gates<T>& g, Index begin, Index end) noexcept {
  using V = simd::Vec<T, I>;
  const V scale = V::set(T(rule.scale));
  each_vector<V>(end - begin, [&](Index at, Index n) {
    const Index i = begin + at;
    const V up = exp(V::load(g.from_state + i, n)), in = exp(V::load(g.at_edge + i, n));
    (scale * fma(up, V::load(g.from_state_lo + i, n), up)).store(g.from_state + i, n);
    fma(in, V::load(g.at_edge_lo + i, n), in).store(g.at_edge + i, n);
    if (rule.stabilised) exp(V::load(g.one + i, n)).store(g.one + i, n);
  });
}

/// Two vectors of columns of the state, and what a group of tokens has to do with them.
template <class T, Isa I, int count, bool cut>
struct SliceWalk {
  using V = simd::Vec<T, I>;
  static constexpr int R = chunk::kWalkGroup<I>;
  const Tokens<T>& x;
  const Gates<T>& g;
  const T* pairs;  // [C, R] q_i · k_j of the tokens of a group
  chunk::StateSlice<T, I, count, cut> slice;
  T carry;
  const T* v;  // the slice's columns
  Rows<T> o;
  Prefetch<T, I>& prefetch;
  V sum[R][count], values[R][count];

  [[nodiscard]] ISOMER_INLINE Rows<const T> queries(Index i) const { return {x.q.data + i * x.q.stride, x.q.stride}; }
  template <int n>
  ISOMER_INLINE void enter(Index i) {
    const Rows<const T> q = queries(i);
    chunk::clear<n>(sum);
    slice.template pass<false>([](Index, V(&)[count]) {},
                               [&](Index a, const V(&row)[count]) { chunk::read_rows<n>(q, a, row, sum); });
  }
  template <int n>
  ISOMER_INLINE void finish(Index first) {
#pragma GCC unroll 4
    for (int i = 0; i < n; ++i) {
      const Index t = first + i;
      const V in = V::set(g.at_edge[t]), out = V::set(g.from_state[t]);
      slice.load(v + t * x.v.stride, values[i]);
#pragma GCC unroll 2
      for (int c = 0; c < count; ++c) values[i][c] = in * values[i][c];
      chunk::add_pairs(pairs + t * R, i + 1, values, sum[i]);
#pragma GCC unroll 2
      for (int c = 0; c < count; ++c) sum[i][c] = out * sum[i][c];
      slice.store(sum[i], o.data + t * o.stride);
    }
    prefetch();
  }
  template <int n, int m>
  ISOMER_INLINE void pass(Index i) {
    const Rows<const T> k{x.k.data + i * x.k.stride, x.k.stride}, q = queries(i + n);
    const V end = V::set(carry);
    chunk::clear<m>(sum);
    slice.template pass<true>(
        [&](Index a, V(&row)[count]) {
          chunk::write_rows<n>(k, a, values, row);
#pragma GCC unroll 2
          for (int c = 0; c < count && m == 0; ++c) row[c] = end * row[c];
        },
        [&](Index a, const V(&row)[count]) { chunk::read_rows<m>(q, a, row, sum); });
  }
};

/// q_i · k_j for j ≤ i of each group of tokens.
template <class T, Isa I>
void multiply_groups(const Tokens<T>& x, Index begin, Index end, T* pairs) noexcept {
  constexpr Index R = chunk::kWalkGroup<I>;
  for (Index i = begin; i < end; ++i) {
    const Index first = i - (i - begin) % R;
    for (Index j = first; j <= i; ++j)
      pairs[i * R + (j - first)] = dot<T, I>(x.q.data + i * x.q.stride, x.k.data + j * x.k.stride, x.K);
  }
}

/// The divisors of a segment's outputs, into from_state, and `norm` after it.
template <class T, Isa I>
void divide_groups(const Tokens<T>& x, const Rule& rule, const Gates<T>& g, Index begin, const Segment<T>& segment,
                   const T* pairs, T* norm) noexcept {
  constexpr Index R = chunk::kWalkGroup<I>;
  for (Index first = begin; first < segment.end; first += R) {
    const Index last = first + R < segment.end ? first + R : segment.end;
    for (Index i = first; i < last; ++i) {
      T den = dot<T, I>(x.q.data + i * x.q.stride, norm, x.K);
      for (Index j = first; j <= i; ++j) den += pairs[i * R + (j - first)] * g.at_edge[j];
      g.from_state[i] *= inverse_divisor(rule, g.from_state[i] * den, rule.stabilised ? g.one[i] : T(1));
    }
    for (Index j = first; j < last; ++j) scaled<T, I, true>(g.at_edge[j], x.k.data + j * x.k.stride, norm, x.K);
  }
  scaled<T, I>(segment.carry, norm, norm, x.K);
}

template <class T, Isa I>
void Kernels<T, I>::walk(const Tokens<T>& x, const Rule& rule, const Edge<T>& edge, const Scratch<T>& s, Rows<T> o,
                         const PrefetchList<T>& ahead) noexcept {
  Prefetch<T, I> prefetch = chunk::spread<T, I>(ahead, chunk::groups_of<T, I>(x.C, x.V, chunk::kWalkGroup<I>));
  for (Index begin = 0; begin < x.C;) {
    const Segment<T> segment = scan_segment<T, I>(x, rule, s.gates, begin, rule.stabilised ? double(*edge.max) : 0.0);
    exponentials<T, I>(rule, s.gates, begin, segment.end);
    if (segment.rescale != T(1)) {
      scaled<T, I>(segment.rescale, edge.state, edge.state, x.K * x.V);
      scaled<T, I>(segment.rescale, edge.norm, edge.norm, x.K);
    }
    multiply_groups<T, I>(x, begin, segment.end, s.qw);
    if (rule.divides) divide_groups<T, I>(x, rule, s.gates, begin, segment, s.qw, edge.norm);
    chunk::each_slice<T, I>(x.V, [&]<int count, bool cut>(Index c) {
      SliceWalk<T, I, count, cut> walk{
          x,        s.gates, s.qw, {edge.state + c, x.V, x.K, x.V - c}, segment.carry, x.v.data + c, {o.data + c, o.stride},
          prefetch, {},      {}};
      chunk::walk_groups<chunk::kWalkGroup<I>>(walk, begin, segment.end);
    });
    if (rule.stabilised) *edge.max = T(segment.max);
    begin = segment.end;
  }
}

}  // namespace isomer::scalar_decay_detail

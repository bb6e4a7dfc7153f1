#pragma once
// Backward through a chunk of several segments: see README.md. For the translation units of one Isa.
#include "isomer/laws/delta/delta_load_impl.h"

namespace isomer::delta_detail {

/// A(i, p) is zero for p < i / writes − begin.
struct UpperOfSegment {
  Index writes, begin;
  [[nodiscard]] ISOMER_INLINE gemm::Range depth(Index i, Index, Index, Index, Index depth) const {
    const Index first = i / writes - begin;
    return {first > 0 ? first : 0, depth};
  }
};

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
  const Index K = x.K, W = rule.writes(), n = rule.gates(K), skip = rule.low_rank ? 1 : 0;
  T* carried = s.wt;  // [N,K]
  for (Index a = 0; a < K; ++a) s.from[a] = 1;
  const auto add = [&](auto shape, Index rows, Index depth, const T* grad, T* to) {
    gemm::multiply<T, I>(shape, rows, K, depth, {grad, 2 * b.stride, 1}, carried, K, to, 2 * K, gemm::Store::add);
  };
  for (Index g = 0; g < *m.segments; ++g) {
    const Index begin = m.first[g], end = m.first[g + 1], before = W * begin;
    T *rx = b.reads + 2 * begin * K, *rq = rx + K;
    const T *gl = b.pairs + 2 * begin * b.stride, *gp = gl + b.stride;
    if (rule.low_rank) {
      times<T, I>(s.from, rx, rx, K);
      if (begin > 0) add(gemm::Full{}, 1, before, gl, rx);
    }
    decay_rows<T, I>(m.entry + begin * n, n, carried, before, K);
    decay_rows<T, I>(m.entry + begin * n, n, s.from, 1, K);
    copy_row<T, I>(b.seg_w + before * K, nullptr, carried + before * K, W * (end - begin) * K);
    for (Index i = 0; i < end - begin; ++i) times<T, I>(s.from, rq + 2 * i * K, rq + 2 * i * K, K);
    for (Index i = skip; i < end - begin; ++i) times<T, I>(s.from, rx + 2 * i * K, rx + 2 * i * K, K);
    add(LowerOfA<1>{before, W}, end - begin, W * end, gp, rq);
    add(LowerOfA<1>{before + skip * W, W}, end - begin - skip, W * end, gl + 2 * skip * b.stride, rx + 2 * skip * K);
    decay_rows<T, I>(m.up + (end - 1) * n, n, carried, W * end, K);
    decay_rows<T, I>(m.up + (end - 1) * n, n, s.from, 1, K);
  }
}

/// Those of writers, from the chunk's end back to the beginning of the segment of each.
template <class T, Isa I>
void write_segments(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const BackwardScratch<T>& b) noexcept {
  const Index K = x.K, W = rule.writes(), N = b.stride, n = rule.gates(K), skip = rule.low_rank ? 1 : 0;
  for (Index g = *m.segments; g-- > 0;) {
    const Index begin = m.first[g], end = m.first[g + 1], before = W * begin;
    decay_rows<T, I>(m.up + (end - 1) * n, n, b.write, W * end, K);
    const auto add = [&](Index from, Index to, const T* grad, const T* rows) {
      gemm::multiply<T, I>(UpperOfSegment{W, from}, W * end, K, to - from, {grad + 2 * from * N, 1, 2 * N}, rows + from * K, K,
                           b.write, K, gemm::Store::add);
    };
    if (end > begin) add(begin, end, b.pairs + N, b.seg_q);
    if (end > begin + skip) add(begin + skip, end, b.pairs, b.seg_x);
    decay_rows<T, I>(m.entry + begin * n, n, b.write, before, K);
    if (rule.low_rank && begin > 0)
      gemm::multiply<T, I>(gemm::Full{}, before, K, 1, {b.pairs + 2 * begin * N, 1, N}, b.seg_x + begin * K, K, b.write, K,
                           gemm::Store::add);
  }
}

}  // namespace isomer::delta_detail

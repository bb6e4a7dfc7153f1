#pragma once
// A step: queries that share keys and values against a stretch of them, so that each is read once for all of these queries. For
// the translation units of one Isa only.
#include <cmath>
#include <limits>

#include "isomer/laws/attention/attention_forward_impl.h"

namespace isomer::attention_detail {

namespace internal {

/// How many independent sums are held in registers: half of those that there are.
template <class T, Isa I>
inline constexpr int kStepSums = simd::Vec<T, I>::lanes * sizeof(T) == 64 ? 16 : 8;

/// Asks for `bytes` that are read soon. Prefetchers of the machine begin anew with every page, and rows of one head are few
/// pages.
ISOMER_INLINE void fetch_ahead(const void* from, Index bytes) {
  constexpr Index kAhead = 3 * 4096, kLine = 64;
  for (Index line = 0; line < bytes; line += kLine) __builtin_prefetch(static_cast<const char*>(from) + kAhead + line, 0, 3);
}

/// scores[n * S + j + i] = scale · q_n·k_{j+i} for `count` keys, at most as many as a vector has lanes.
template <class T, Isa I, int queries>
ISOMER_INLINE void dot_keys(const Head<T>& head, const StepQueries<T>& with, Index j, Index count, T* scores) {
  using V = simd::Vec<T, I>;
  constexpr int most = kStepSums<T, I> / queries < 4 ? kStepSums<T, I> / queries : 4;
  T sums[queries][V::lanes * V::lanes];
  // Some keys at a time: independent sums hide the latency, and a query is loaded once for all of them.
  const auto some = [&]<int keys>(Index i) __attribute__((always_inline)) {
    V acc[queries][keys];
#pragma GCC unroll 4
    for (int n = 0; n < queries; ++n)
#pragma GCC unroll 4
      for (int e = 0; e < keys; ++e) acc[n][e] = V::zero();
    fetch_ahead(head.k.data + (j + i) * head.k.stride, keys * head.k.stride * Index(sizeof(T)));
    for (Index p = 0; p < head.K; p += V::lanes) {
      V k[keys];
#pragma GCC unroll 4
      for (int e = 0; e < keys; ++e) k[e] = V::load(head.k.data + (j + i + e) * head.k.stride + p, head.K - p);
#pragma GCC unroll 4
      for (int n = 0; n < queries; ++n) {
        const V q = V::load(with.q[n] + p, head.K - p);
#pragma GCC unroll 4
        for (int e = 0; e < keys; ++e) acc[n][e] = fma(q, k[e], acc[n][e]);
      }
    }
#pragma GCC unroll 4
    for (int n = 0; n < queries; ++n)
#pragma GCC unroll 4
      for (int e = 0; e < keys; ++e) acc[n][e].store(sums[n] + (i + e) * V::lanes);
  };
  Index i = 0;
  for (; i + most <= count; i += most) some.template operator()<most>(i);
  for (; i < count; ++i) some.template operator()<1>(i);
  for (int n = 0; n < queries; ++n) {
    for (Index rest = count; rest < V::lanes; ++rest) V::zero().store(sums[n] + rest * V::lanes);
    (V::sum_rows(sums[n], V::lanes) * V::set(head.scale)).store(scores + n * head.S + j, count);
  }
}

/// to[n * V + from …] = Σ_j scores_{n j} v_j over `vectors` vectors of the values, reading each value once. Several: whole cache
/// lines of every value are used, and as many sums hide the latency of an FMA.
template <class T, Isa I, int queries, int vectors>
ISOMER_INLINE void weighted_strip(const Head<T>& head, const T* scores, Index from, T* to) {
  using V = simd::Vec<T, I>;
  const Index left = vectors == 1 ? head.V - from : vectors * V::lanes;
  V acc[queries][vectors];
#pragma GCC unroll 4
  for (int n = 0; n < queries; ++n)
#pragma GCC unroll 8
    for (int e = 0; e < vectors; ++e) acc[n][e] = V::zero();
  for (Index j = 0; j < head.S; ++j) {
    const T* v = head.v.data + j * head.v.stride + from;
    fetch_ahead(v, vectors * V::lanes * Index(sizeof(T)));
    V value[vectors];
#pragma GCC unroll 8
    for (int e = 0; e < vectors; ++e) value[e] = vectors == 1 ? V::load(v, left) : V::load(v + e * V::lanes);
#pragma GCC unroll 4
    for (int n = 0; n < queries; ++n) {
      const V w = V::set(scores[n * head.S + j]);
#pragma GCC unroll 8
      for (int e = 0; e < vectors; ++e) acc[n][e] = fma(w, value[e], acc[n][e]);
    }
  }
  for (int n = 0; n < queries; ++n)
    for (int e = 0; e < vectors; ++e) acc[n][e].store(to + n * head.V + from + e * V::lanes, left - e * V::lanes);
}

/// Logits of one query become weights; returns their largest logit and the sum.
template <class T, Isa I>
ISOMER_INLINE void step_weights(const Head<T>& head, const T* bias, T* scores, T* high, T* total) {
  using V = simd::Vec<T, I>;
  const Span all{0, head.S};
  if (head.clamps()) clamp_span<T, I>(head, all, scores, nullptr);
  if (head.order >= 0) {
    *high = *total = 0;
    for (Index j = 0; j < head.S; ++j) {
      const V w = taylor<T, I>(V::set(scores[j]), head.order) *
                  (bias != nullptr ? simd::exp2_nonpositive<T, I>(V::set(bias[j])) : V::set(T(1)));
      w.store(scores + j, 1);
      *total += scores[j];
    }
    return;
  }
  if (bias != nullptr) map_span<T, I>(scores, all, [&](V x, Index at, Index n) { return x + V::load(bias + at, n); });
  constexpr T none = -std::numeric_limits<T>::infinity();
  *high = span_max<T, I>(scores, all, none);
  // Where every key was forgotten weights are zero; −inf less itself would not be.
  *total = span_exp<T, I>(scores, all, *high > none ? *high : T(0));
}

template <class T, Isa I, int queries>
void step_of(const Head<T>& head, const StepQueries<T>& with, T* scores, const StepSums<T>& to) noexcept {
  using V = simd::Vec<T, I>;
  for (Index j = 0; j < head.S; j += V::lanes)
    dot_keys<T, I, queries>(head, with, j, head.S - j < V::lanes ? head.S - j : V::lanes, scores);
  for (int n = 0; n < queries; ++n) step_weights<T, I>(head, with.bias[n], scores + n * head.S, to.high + n, to.total + n);
  // Powers of two, as head sizes are multiples of them: a head of 64 is one strip, and its values are read once.
  constexpr int sums = kStepSums<T, I> / queries, most = sums >= 8 ? 8 : sums >= 4 ? 4 : 2, fewer = most / 2;
  Index p = 0;
  for (; p + most * V::lanes <= head.V; p += most * V::lanes) weighted_strip<T, I, queries, most>(head, scores, p, to.sums);
  for (; p + fewer * V::lanes <= head.V; p += fewer * V::lanes) weighted_strip<T, I, queries, fewer>(head, scores, p, to.sums);
  for (; p < head.V; p += V::lanes) weighted_strip<T, I, queries, 1>(head, scores, p, to.sums);
}

}  // namespace internal

template <class T, Isa I>
void Kernels<T, I>::step(const Head<T>& head, const StepQueries<T>& queries, T* scores, const StepSums<T>& to) noexcept {
  switch (queries.count) {
    case 4: return internal::step_of<T, I, 4>(head, queries, scores, to);
    case 3: return internal::step_of<T, I, 3>(head, queries, scores, to);
    case 2: return internal::step_of<T, I, 2>(head, queries, scores, to);
    default: return internal::step_of<T, I, 1>(head, queries, scores, to);
  }
}

}  // namespace isomer::attention_detail

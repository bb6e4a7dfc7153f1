#pragma once
// One tile of the attention matrix: logits, masks, forget gate, weights. Shared by the forward and the backward kernels; for the
// translation units of one Isa only.
#include "isomer/kernels/gemm/tile_impl.h"
#include "isomer/laws/attention/attention_chunk.h"
#include "isomer/simd/exp2.h"

namespace isomer::attention_detail {

/// Rows = queries from `query`, columns = keys from `key`.
struct Tile {
  Index query, rows, key, columns;
};

struct Span {
  Index begin, end;
};
/// The visible columns of a row of the tile: sinks, then the rest.
struct RowSpans {
  Span sink, main;
};

ISOMER_INLINE Span clip(Index begin, Index end, const Tile& tile) {
  const auto inside = [&](Index key) {
    return key < tile.key ? 0 : key - tile.key < tile.columns ? key - tile.key : tile.columns;
  };
  const Index low = inside(begin), high = inside(end);
  return {low, high > low ? high : low};
}

template <class T>
ISOMER_INLINE RowSpans row_spans(const Head<T>& head, const Tile& tile, Index row) {
  const Visible v = head.visible[tile.query + row];
  return {clip(v.sink_begin, v.sink_end, tile), clip(v.begin, v.end, tile)};
}

/// Where, relative to the diagonal, the tile can be visible; with sinks in it, everywhere below.
template <class T>
ISOMER_INLINE Span tile_band(const Head<T>& head, const Tile& tile) {
  const Index diagonal = head.first + tile.query - tile.key;
  const bool sinks = tile.key < head.visible[tile.query + tile.rows - 1].sink_end;
  return {sinks ? -(tile.rows + tile.columns) : diagonal - head.below, diagonal + head.above};
}

/// Sets what lies outside the spans of the row to zero, so that matrix products may read whole tiles.
template <class T, Isa I>
ISOMER_INLINE void clear_outside(T* row, const RowSpans& s, Index columns) {
  using V = simd::Vec<T, I>;
  const auto clear = [&](Index from, Index to) {
    for (Index j = from; j < to; j += V::lanes) V::zero().store(row + j, to - j);
  };
  Index at = 0;
  for (const Span span : {s.sink, s.main}) {
    if (span.begin == span.end) continue;
    clear(at, span.begin);
    at = span.end;
  }
  clear(at, columns);
}

/// row[j] = f(row[j], j) over the span. f sees whole vectors; lanes beyond the span are not stored.
template <class T, Isa I, class F>
ISOMER_INLINE void map_span(T* row, Span span, F f) {
  using V = simd::Vec<T, I>;
  Index j = span.begin;
  for (; j + V::lanes <= span.end; j += V::lanes) f(V::load(row + j), j, V::lanes).store(row + j);
  if (j < span.end) f(V::load(row + j, span.end - j), j, span.end - j).store(row + j, span.end - j);
}

/// Cuts the logits of a row to the clamp. `passes`, unless null: 0 where one was above, else 1. A NaN stays.
template <class T, Isa I>
ISOMER_INLINE void clamp_span(const Head<T>& head, Span span, T* logits, T* passes) {
  using V = simd::Vec<T, I>;
  const V clamp = V::set(head.clamp);
  map_span<T, I>(logits, span, [&](V x, Index j, Index n) {
    if (passes != nullptr) select(clamp < x, V::zero(), V::set(T(1))).store(passes + j, n);
    return min(clamp, x);
  });
}

/// The same for the visible part of a tile; apart from the loops over rows, which do not pay for a clamp that is not there.
template <class T, Isa I>
void clamp_tile(const Head<T>& head, const Tile& tile, T* logits, T* passes) noexcept {
  for (Index i = 0; i < tile.rows; ++i) {
    const RowSpans spans = row_spans(head, tile, i);
    const Index row = i * head.block_k;
    for (const Span span : {spans.sink, spans.main})
      clamp_span<T, I>(head, span, logits + row, passes != nullptr ? passes + row : nullptr);
  }
}

/// Adds c_query − c_key to the logits of a row: the logarithm of the decay between them.
template <class T, Isa I>
ISOMER_INLINE void add_forget(const Head<T>& head, const Tile& tile, Index row, Span span, T* logits) {
  using V = simd::Vec<T, I>;
  const Index position = head.first + tile.query + row;
  const V hi = V::set(head.forget_hi[position]), lo = V::set(head.forget_lo[position]);
  const T *key_hi = head.forget_hi + tile.key, *key_lo = head.forget_lo + tile.key;
  map_span<T, I>(logits, span,
                 [&](V x, Index j, Index n) { return x + ((hi - V::load(key_hi + j, n)) + (lo - V::load(key_lo + j, n))); });
}

/// Adds the bias of each key's place seen from the query.
template <class T, Isa I>
ISOMER_INLINE void add_bias(const Head<T>& head, const Tile& tile, Index row, Span span, T* logits) {
  using V = simd::Vec<T, I>;
  const T* bias = head.bias + (tile.key - (head.first + tile.query + row));
  map_span<T, I>(logits, span, [&](V x, Index j, Index n) { return x + V::load(bias + j, n); });
}

/// Σ_{n ≤ order} x^n / n!, 0 for a negative order.
template <class T, Isa I>
ISOMER_INLINE simd::Vec<T, I> taylor(simd::Vec<T, I> x, int order) {
  using V = simd::Vec<T, I>;
  if (order < 0) return V::zero();
  V p = V::set(T(1));
  for (int n = order; n > 0; --n) p = fma(p, x * V::set(T(1) / T(n)), V::set(T(1)));
  return p;
}

/// e^{c_query − c_key} for a vector of keys; 1 without a forget gate.
template <class T, Isa I>
ISOMER_INLINE simd::Vec<T, I> decay(const Head<T>& head, Index position, Index key, Index n) {
  using V = simd::Vec<T, I>;
  if (head.forget_hi == nullptr) return V::set(T(1));
  const V hi = V::set(head.forget_hi[position]) - V::load(head.forget_hi + key, n);
  const V lo = V::set(head.forget_lo[position]) - V::load(head.forget_lo + key, n);
  return simd::exp2_nonpositive<T, I>(hi + lo);
}

/// logits [rows, columns] = scaled queries · keys, where the tile can be visible.
template <class T, Isa I>
ISOMER_INLINE void tile_logits(const Head<T>& head, const Packed<T>& packed, const Tile& tile, const T* q, T* logits) {
  constexpr Index W = gemm::kTileColumns<T, I>;
  const Span band = tile_band(head, tile);
  const gemm::Panels<T> keys{packed.keys_t + tile.key * head.K, W, head.K * W};
  gemm::multiply<T, I>(gemm::BandOfC{band.begin, band.end}, tile.rows, tile.columns, head.K, gemm::Strided<T>{q, head.K, 1}, keys,
                       logits, head.block_k, gemm::Store::set);
}

}  // namespace isomer::attention_detail

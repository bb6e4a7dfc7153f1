#pragma once
// Tiled online softmax: for a block of queries, walk over the keys they see, keep a running maximum and rescale. The Taylor
// kernel runs the same loop without a maximum. For the translation units of one Isa only.
#include <cmath>
#include <limits>

#include "isomer/laws/attention/attention_tile_impl.h"

namespace isomer::attention_detail {

template <class T, Isa I>
void Kernels<T, I>::pack_keys(const Head<T>& head, const Packed<T>& packed, Index begin, Index end) noexcept {
  constexpr Index W = gemm::kTileColumns<T, I>;
  const Index n = end - begin, K = head.K, V = head.V;
  const T *k = head.k.data + begin * head.k.stride, *v = head.v.data + begin * head.v.stride;
  if (packed.keys_t != nullptr) gemm::pack_transposed<T, I>(n, K, k, head.k.stride, packed.keys_t + begin * K);
  if (packed.values != nullptr) gemm::pack<T, I>(n, V, v, head.v.stride, packed.values + begin * W, head.S * W);
  if (packed.values_t != nullptr) gemm::pack_transposed<T, I>(n, V, v, head.v.stride, packed.values_t + begin * V);
  if (packed.keys != nullptr) gemm::pack<T, I>(n, K, k, head.k.stride, packed.keys + begin * W, head.S * W);
}

namespace internal {

/// Log-sums leave base 2 by this factor.
template <class T>
inline constexpr T kLn2 = T(0.693147180559945309417232121458);

template <class T, Isa I>
ISOMER_INLINE void scale_row(T* row, Index n, T factor) {
  using V = simd::Vec<T, I>;
  map_span<T, I>(row, {0, n}, [f = V::set(factor)](V x, Index, Index) { return x * f; });
}

template <class T, Isa I>
ISOMER_INLINE T span_max(const T* row, Span span, T high) {
  using V = simd::Vec<T, I>;
  V a = V::set(high), b = a;
  Index j = span.begin;
  for (; j + 2 * V::lanes <= span.end; j += 2 * V::lanes) {
    a = max(a, V::load(row + j));
    b = max(b, V::load(row + j + V::lanes));
  }
  T best = largest(max(a, b));
  for (; j < span.end; ++j) best = row[j] > best ? row[j] : best;
  return best;
}

/// row = 2^{row − high} over the span; returns the sum.
template <class T, Isa I>
ISOMER_INLINE T span_exp(T* row, Span span, T high) {
  using V = simd::Vec<T, I>;
  const V h = V::set(high);
  V total = V::zero();
  Index j = span.begin;
  for (; j + V::lanes <= span.end; j += V::lanes) {
    const V p = simd::exp2_nonpositive<T, I>(V::load(row + j) - h);
    total = total + p;
    p.store(row + j);
  }
  if (const Index left = span.end - j; left > 0) {
    simd::exp2_nonpositive<T, I>(V::load(row + j, left) - h).store(row + j, left);
    total = total + V::load(row + j, left);
  }
  return sum(total);
}

/// The online step of one row: logits become weights relative to the new maximum, earlier sums are rescaled to it.
template <class T, Isa I>
ISOMER_INLINE void softmax_row(const RowSpans& s, T* logits, T* sums, Index V, T& high, T& total) {
  const T best = span_max<T, I>(logits, s.main, span_max<T, I>(logits, s.sink, high));
  if (best > high) {
    // From −inf the factor is 0 and the sums are still 0.
    const T factor = std::exp2(high - best);
    scale_row<T, I>(sums, V, factor);
    total *= factor;
    high = best;
  }
  total += span_exp<T, I>(logits, s.sink, high) + span_exp<T, I>(logits, s.main, high);
}

template <class T, Isa I>
ISOMER_INLINE T taylor_span(const Head<T>& head, const Tile& tile, Index row, Span span, T* logits) {
  using V = simd::Vec<T, I>;
  V total = V::zero();
  map_span<T, I>(logits, span, [&](V x, Index j, Index n) {
    const V w = taylor<T, I>(x, head.order) * decay<T, I>(head, head.first + tile.query + row, tile.key + j, n);
    T kept[V::lanes];
    w.store(kept);
    total = total + V::load(kept, n);
    return w;
  });
  return sum(total);
}

/// One tile of keys for the block of queries.
template <class T, Isa I>
void forward_tile(const Head<T>& head, const Packed<T>& packed, const Tile& tile, const ForwardScratch<T>& s) noexcept {
  constexpr Index W = gemm::kTileColumns<T, I>;
  tile_logits<T, I>(head, packed, tile, s.q, s.logits);
  if (head.clamps()) clamp_tile<T, I>(head, tile, s.logits, nullptr);
  for (Index i = 0; i < tile.rows; ++i) {
    const RowSpans spans = row_spans(head, tile, i);
    T* row = s.logits + i * head.block_k;
    if (head.order >= 0) {
      s.total[i] += taylor_span<T, I>(head, tile, i, spans.sink, row) + taylor_span<T, I>(head, tile, i, spans.main, row);
    } else {
      if (head.forget_hi != nullptr) {
        add_forget<T, I>(head, tile, i, spans.sink, row);
        add_forget<T, I>(head, tile, i, spans.main, row);
      }
      if (head.bias != nullptr) add_bias<T, I>(head, tile, i, spans.main, row);
      softmax_row<T, I>(spans, row, s.sums + i * head.V, head.V, s.high[i], s.total[i]);
    }
    clear_outside<T, I>(row, spans, tile.columns);
  }
  const Span band = tile_band(head, tile);
  const gemm::Panels<T> values{packed.values + tile.key * W, W, head.S * W};
  gemm::multiply<T, I>(gemm::BandOfA{band.begin, band.end}, tile.rows, head.V, tile.columns,
                       gemm::Strided<T>{s.logits, head.block_k, 1}, values, s.sums, head.V, gemm::Store::add);
}

}  // namespace internal

template <class T, Isa I>
void Kernels<T, I>::forward_block(const Head<T>& head, const Packed<T>& packed, Index begin, Index rows,
                                  const ForwardScratch<T>& s, Rows<T> out, Rows<T> scale) noexcept {
  using V = simd::Vec<T, I>;
  constexpr Index W = gemm::kTileColumns<T, I>;
  for (Index i = 0; i < rows; ++i) {
    const T* q = head.q.data + (begin + i) * head.q.stride;
    map_span<T, I>(s.q + i * head.K, {0, head.K}, [&](V, Index j, Index n) { return V::load(q + j, n) * V::set(head.scale); });
    map_span<T, I>(s.sums + i * head.V, {0, head.V}, [](V, Index, Index) { return V::zero(); });
    s.high[i] = -std::numeric_limits<T>::infinity();
    s.total[i] = T(0);
  }
  const Visible first = head.visible[begin], last = head.visible[begin + rows - 1];
  const Index main_begin = first.begin / W * W;
  const auto walk = [&](Index from, Index to) {
    for (Index key = from; key < to; key += head.block_k) {
      const Index columns = to - key < head.block_k ? to - key : head.block_k;
      internal::forward_tile<T, I>(head, packed, {begin, rows, key, columns}, s);
    }
  };
  if (last.sink_end > first.sink_begin && last.sink_end < main_begin) {
    walk(first.sink_begin / W * W, last.sink_end);
    walk(main_begin, last.end);
  } else {
    const bool sinks = last.sink_end > first.sink_begin && first.sink_begin < main_begin;
    walk(sinks ? first.sink_begin / W * W : main_begin, last.end);
  }
  for (Index i = 0; i < rows; ++i) {
    const bool sum = head.order < 0 && s.total[i] != T(0);
    const V factor = V::set(sum ? T(1) / s.total[i] : T(1));
    const T* from = s.sums + i * head.V;
    map_span<T, I>(out.data + i * out.stride, {0, head.V}, [&](V, Index j, Index n) { return V::load(from + j, n) * factor; });
    scale.data[i * scale.stride] = head.order < 0 ? s.high[i] * internal::kLn2<T> + std::log(s.total[i]) : s.total[i];
  }
}

}  // namespace isomer::attention_detail

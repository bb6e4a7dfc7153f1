#pragma once
// Backward pass of a block of keys: weights are recomputed from the stored log-sums, so nothing of size T × S is kept.
//   dP = G Vᵀ,  dS = W' ∘ (dP − δ),  dV = Wᵀ G,  dK = dSᵀ Q,  dQ += dS K
//   with W' = W for exp, the derivative of the polynomial for Taylor
// For the translation units of one Isa only.
#include "isomer/laws/attention/attention_tile_impl.h"

namespace isomer::attention_detail {

template <class T, Isa I>
void Kernels<T, I>::pack_queries(const Head<T>& head, const Backward<T>& b, Index begin, Index rows) noexcept {
  using Vec = simd::Vec<T, I>;
  constexpr Index W = gemm::kTileColumns<T, I>;
  const Index K = head.K, V = head.V;
  for (Index i = begin; i < begin + rows; ++i) {
    const T* q = head.q.data + i * head.q.stride;
    map_span<T, I>(b.q + i * K, {0, K}, [&](Vec, Index j, Index n) { return Vec::load(q + j, n) * Vec::set(head.scale); });
  }
  gemm::pack<T, I>(rows, K, b.q + begin * K, K, b.q_panels + begin * round_up(K, W), rows * W);
  gemm::pack<T, I>(rows, V, b.grad + begin * V, V, b.grad_panels + begin * round_up(V, W), rows * W);
}

namespace internal {

/// Turns the logits of a span into weights (and slopes, for Taylor).
template <class T, Isa I>
ISOMER_INLINE void weigh(const Head<T>& head, const Tile& tile, Index row, Span span, T* weights, T* slopes, T log_sum) {
  using V = simd::Vec<T, I>;
  if (head.order < 0) {
    if (head.forget_hi != nullptr) add_forget<T, I>(head, tile, row, span, weights);
    if (head.bias != nullptr) add_bias<T, I>(head, tile, row, span, weights);
    const V high = V::set(log_sum);
    map_span<T, I>(weights, span, [&](V x, Index, Index) { return simd::exp2_nonpositive<T, I>(x - high); });
    return;
  }
  map_span<T, I>(weights, span, [&](V x, Index j, Index n) {
    const V d = decay<T, I>(head, head.first + tile.query + row, tile.key + j, n);
    (taylor<T, I>(x, head.order - 1) * d).store(slopes + j, n);
    return taylor<T, I>(x, head.order) * d;
  });
}

/// Row sums and column sums of Z = W ∘ (dP − δ): what the forget gate of the row's query and of each key gets.
template <class T, Isa I>
ISOMER_INLINE void forget_row(const T* weights, const T* grads, T delta, Span span, double& query, double* keys) {
  for (Index j = span.begin; j < span.end; ++j) {
    const double z = double(weights[j]) * (double(grads[j]) - double(delta));
    query += z;
    keys[j] += z;
  }
}

/// Z to what the bias of each key's place gets.
template <class T, Isa I>
ISOMER_INLINE void bias_row(const T* weights, const T* grads, T delta, Span span, double* places) {
  for (Index j = span.begin; j < span.end; ++j) places[j] += double(weights[j]) * (double(grads[j]) - double(delta));
}

/// Nothing passes to a logit that was cut.
template <class T, Isa I>
void stop_gradients(const Head<T>& head, const Tile& tile, const T* passes, T* grads) noexcept {
  using V = simd::Vec<T, I>;
  for (Index i = 0; i < tile.rows; ++i, passes += head.block_k, grads += head.block_k) {
    const RowSpans spans = row_spans(head, tile, i);
    for (const Span span : {spans.sink, spans.main})
      map_span<T, I>(grads, span, [&](V x, Index j, Index n) { return x * V::load(passes + j, n); });
  }
}

template <class T, Isa I>
void backward_tile(const Head<T>& head, const Packed<T>& packed, const Backward<T>& b, const Tile& tile,
                   gemm::Store store) noexcept {
  using Vec = simd::Vec<T, I>;
  constexpr Index W = gemm::kTileColumns<T, I>;
  const Index K = head.K, V = head.V, ld = head.block_k;
  const Span band = tile_band(head, tile);
  tile_logits<T, I>(head, packed, tile, b.q + tile.query * K, b.weights);
  if (head.clamps()) clamp_tile<T, I>(head, tile, b.weights, b.passes);
  // dP in `logits`: the gradient of the weights.
  gemm::multiply<T, I>(gemm::BandOfC{band.begin, band.end}, tile.rows, tile.columns, V,
                       gemm::Strided<T>{b.grad + tile.query * V, V, 1}, gemm::Panels<T>{packed.values_t + tile.key * V, W, V * W},
                       b.logits, ld, gemm::Store::set);
  for (Index i = 0; i < tile.rows; ++i) {
    const RowSpans spans = row_spans(head, tile, i);
    T *w = b.weights + i * ld, *g = b.logits + i * ld, *slopes = b.slopes != nullptr ? b.slopes + i * ld : nullptr;
    const T delta = b.delta[tile.query + i];
    for (const Span span : {spans.sink, spans.main}) {
      weigh<T, I>(head, tile, i, span, w, slopes, b.scale[tile.query + i]);
      if (b.forget_q != nullptr) forget_row<T, I>(w, g, delta, span, b.forget_q[tile.query + i], b.forget_k + tile.key);
      if (b.bias != nullptr) bias_row<T, I>(w, g, delta, span, b.bias + (tile.key - (head.first + tile.query + i)));
      const T* slope = slopes != nullptr ? slopes : w;
      map_span<T, I>(g, span, [&](Vec x, Index j, Index n) { return Vec::load(slope + j, n) * (x - Vec::set(delta)); });
    }
    clear_outside<T, I>(w, spans, tile.columns);
    clear_outside<T, I>(g, spans, tile.columns);
  }
  if (head.clamps()) stop_gradients<T, I>(head, tile, b.passes, b.logits);
  const gemm::Panels<T> queries{b.q_panels + tile.query * round_up(K, W), W, tile.rows * W};
  const gemm::Panels<T> grads{b.grad_panels + tile.query * round_up(V, W), W, tile.rows * W};
  // Of the transposed tile: key j meets query i where lo ≤ j − i ≤ hi, that is −hi ≤ i − j ≤ −lo.
  const gemm::BandOfA transposed{-band.end, -band.begin};
  gemm::multiply<T, I>(transposed, tile.columns, V, tile.rows, gemm::Strided<T>{b.weights, 1, ld}, grads, b.grad_v + tile.key * V,
                       V, store);
  gemm::multiply<T, I>(transposed, tile.columns, K, tile.rows, gemm::Strided<T>{b.logits, 1, ld}, queries,
                       b.grad_k + tile.key * K, K, store);
  gemm::multiply<T, I>(gemm::BandOfA{band.begin, band.end}, tile.rows, K, tile.columns, gemm::Strided<T>{b.logits, ld, 1},
                       gemm::Panels<T>{packed.keys + tile.key * W, W, head.S * W}, b.grad_q + tile.query * K, K,
                       gemm::Store::add);
}

}  // namespace internal

template <class T, Isa I>
void Kernels<T, I>::backward_block(const Head<T>& head, const Packed<T>& packed, const Backward<T>& b, Index begin,
                                   Index columns) noexcept {
  for (Index j = begin * head.K; j < (begin + columns) * head.K; ++j) b.grad_k[j] = T(0);
  for (Index j = begin * head.V; j < (begin + columns) * head.V; ++j) b.grad_v[j] = T(0);
  for (Index query = 0; query < head.T_; query += head.block_q) {
    const Index rows = head.T_ - query < head.block_q ? head.T_ - query : head.block_q;
    const Visible first = head.visible[query], last = head.visible[query + rows - 1];
    const bool sinks = first.sink_begin < begin + columns && last.sink_end > begin;
    const bool main = first.begin < begin + columns && last.end > begin;
    if (sinks || main) internal::backward_tile<T, I>(head, packed, b, {query, rows, begin, columns}, gemm::Store::add);
  }
}

}  // namespace isomer::attention_detail

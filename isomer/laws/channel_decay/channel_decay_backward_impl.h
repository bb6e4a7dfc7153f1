#pragma once
// The chunk form, backward: see README.md for the derivation. For the translation units of one Isa.
#include "isomer/laws/channel_decay/channel_decay_chunk_impl.h"

namespace isomer::channel_decay_detail {

/// The rows of a block in the scratch: inputs, and gradients to add to.
template <class T>
struct BlockRows {
  const T *q, *k, *decay, *k_block;
  T *grad_q, *grad_k, *grad_decay;  // [m,P], rows R apart
  const T* p;                       // [m,m] gradients of the weights, rows p_stride apart
  Index p_stride, P, R, m;
};

/// Pairs of a block's tokens over `vectors` vectors of channels. For each key, forward through its decays: what it gives to q;
/// then back: what the later queries give to it, and where both meet, at each decay, what they give to that.
template <class T, Isa I, int vectors, bool before>
ISOMER_INLINE void pair_gradients(BlockRows<T> r, const T* bonus, T* grad_bonus, Index c) {
  using V = simd::Vec<T, I>;
  constexpr Index lanes = V::lanes;
  V keys[kBlock][vectors], own_sum[vectors];
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) own_sum[v] = V::load(grad_bonus + c + v * lanes);
  for (Index j = 0; j < r.m; ++j) {
    const Index at = j * r.R + c;
    V key[vectors], back[vectors];
    const V own = V::set(r.p[j * r.p_stride + j]);
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      const Index l = at + v * lanes;
      key[v] = V::load(r.k + l);
      const V u = before ? own * V::load(bonus + c + v * lanes) : own;
      fma(u, key[v], V::load(r.grad_q + l)).store(r.grad_q + l);
      if (before) own_sum[v] = fma(own * key[v], V::load(r.q + l), own_sum[v]);
      back[v] = V::zero();
    }
    for (Index i = j + 1; i < r.m; ++i) {
      const V g = V::set(r.p[i * r.p_stride + j]);
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        const Index l = i * r.R + c + v * lanes;
        const V moved = key[v] * V::load(r.decay + l);
        fma(g, before ? key[v] : moved, V::load(r.grad_q + l)).store(r.grad_q + l);
        keys[i][v] = key[v] = moved;
      }
    }
    for (Index i = r.m; --i > j;) {
      const V g = V::set(r.p[i * r.p_stride + j]);
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        const Index l = i * r.R + c + v * lanes;
        const V q = V::load(r.q + l);
        if (!before) back[v] = fma(g, q, back[v]);
        fma(keys[i][v], back[v], V::load(r.grad_decay + l)).store(r.grad_decay + l);
        back[v] = back[v] * V::load(r.decay + l);
        if (before) back[v] = fma(g, q, back[v]);
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      const Index l = at + v * lanes;
      const V u = before ? own * V::load(bonus + c + v * lanes) : own;
      (V::load(r.grad_k + l) + fma(u, V::load(r.q + l), back[v])).store(r.grad_k + l);
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) own_sum[v].store(grad_bonus + c + v * lanes);
}

/// From gradients that came into a block, of its queries where it begins and of its keys where it ends, to those of the tokens;
/// the decays get what passes over the block, what queries at and after them read of earlier blocks, and what keys before them
/// give to later ones.
template <class T, Isa I, bool before>
void finish_block(BlockRows<T> r, const Rule<T>& rule, const BackwardScratch<T>& b) noexcept {
  using V = simd::Vec<T, I>;
  for (Index c = 0; c < r.P; c += V::lanes) {
    const V one = V::set(T(1));
    V product = one, flow = V::load(b.passing + c);
    for (Index i = 0; i < r.m; ++i) {
      const Index l = i * r.R + c;
      const V moved = product * V::load(r.decay + l);
      ((before ? product : moved) * V::load(r.grad_q + l)).store(r.grad_q + l);
      product = moved;
      flow.store(r.grad_decay + l);
      flow = fma(V::load(r.k_block + l), V::load(r.grad_k + l), flow);
    }
    product = one, flow = V::zero();
    for (Index i = r.m; i-- > 0;) {
      const Index l = i * r.R + c;
      const V read = V::load(r.q + l) * V::load(r.grad_q + l);
      if (!before) flow = flow + read;
      (flow + V::load(r.grad_decay + l)).store(r.grad_decay + l);
      if (before) flow = flow + read;
      (product * V::load(r.grad_k + l)).store(r.grad_k + l);
      product = product * V::load(r.decay + l);
    }
  }
  for (Index c = 0; c < r.P; c += 2 * V::lanes) pair_gradients<T, I, 2, before>(r, rule.bonus, b.grad_bonus, c);
}

/// Gradients of keys of the blocks before block n move from its end to its beginning, and what they and those keys have in
/// common, which passes over the block, is added to b.passing. grad_k of these blocks then takes what the block's own queries
/// give.
template <class T, Isa I>
void move_back(const Tokens<T>& x, const Scratch<T>& s, const BackwardScratch<T>& b, Index n, Prefetch<T, I>& prefetch) noexcept {
  using V = simd::Vec<T, I>;
  const Index P = padded(x.K), R = row_of(x.K), begin = block_begin(n), m = block_end(n, x.C) - begin;
  const T* product = s.block_decay + n * R;
  for (Index c = 0; c < P; c += V::lanes) {
    const V f = V::load(product + c);
    V between = V::set(T(1)), total = V::load(b.passing + c);
    for (Index o = n; o-- > 0;) {
      V part = V::zero();
      for (Index j = block_begin(o); j < block_begin(o + 1); ++j) {
        const V g = f * V::load(b.grad_k + j * R + c);
        g.store(b.grad_k + j * R + c);
        part = fma(V::load(s.k_block + j * R + c), g, part);
      }
      total = fma(between, part, total);
      between = between * V::load(s.block_decay + o * R + c);
    }
    total.store(b.passing + c);
  }
  const Index row = s.kt_stride;
  gemm::multiply<T, I>(gemm::Full{}, begin, x.K, m, {b.p + begin * row, 1, row}, s.q_block + begin * R, R, b.grad_k, R,
                       gemm::Store::add, prefetch);
}

/// grad_q at the beginning of each block: from the state, and from the keys of earlier blocks. Afterwards b.keys has the keys at
/// the end of the chunk, and b.from_state what the state's decays get from each block's outputs.
template <class T, Isa I>
void gather_queries(const Tokens<T>& x, const Scratch<T>& s, const BackwardScratch<T>& b, const T* state,
                    Prefetch<T, I>& prefetch) noexcept {
  using V = simd::Vec<T, I>;
  const Index P = padded(x.K), R = row_of(x.K), C = x.C, blocks = blocks_of(C);
  if (!x.empty) {
    gemm::transpose<T, I>(x.K, x.V, state, x.V, b.state_t, R);
    gemm::multiply<T, I>(gemm::Full{}, C, x.K, x.V, {b.y, x.V, 1}, b.state_t, R, b.grad_q, R, gemm::Store::set, prefetch);
  }
  for (Index n = 0; n < blocks; ++n) {
    const Index begin = block_begin(n), end = block_end(n, C);
    for (Index c = 0; c < P; c += V::lanes) {
      const V entered = V::load(s.entered + n * R + c);
      V total = V::zero();
      for (Index i = begin; i < end; ++i) {
        const V g = x.empty ? V::zero() : entered * V::load(b.grad_q + i * R + c);
        g.store(b.grad_q + i * R + c);
        total = fma(V::load(s.q_block + i * R + c), g, total);
      }
      total.store(b.from_state + n * R + c);
    }
    for (Index j = begin; j < end; ++j) copy_row<T, I>(s.k_block + j * R, nullptr, b.keys + j * R, P);
    if (n == 0) continue;
    gemm::multiply<T, I>(gemm::Full{}, end - begin, x.K, begin, {b.p + begin * s.kt_stride, s.kt_stride, 1}, b.keys, R,
                         b.grad_q + begin * R, R, gemm::Store::add, prefetch);
    for (Index c = 0; c < P; c += V::lanes) {
      const V f = V::load(s.block_decay + n * R + c);
      for (Index j = 0; j < begin; ++j) (f * V::load(b.keys + j * R + c)).store(b.keys + j * R + c);
    }
  }
}

/// b.y = the gradient of o.
template <class T, Isa I>
void load_gradient(const Tokens<T>& x, Rows<const T> grad_o, T* y) noexcept {
  for (Index i = 0; i < x.C && grad_o.data; ++i) copy_row<T, I>(grad_o.data + i * grad_o.stride, nullptr, y + i * x.V, x.V);
  for (Index i = 0; i < x.C * x.V && !grad_o.data; ++i) y[i] = 0;
}

template <class T, Isa I>
void store_rows(const T* from, Index from_stride, T factor, Rows<T> to, Index rows, Index width) noexcept {
  for (Index i = 0; i < rows && to.data; ++i) scaled<T, I>(factor, from + i * from_stride, to.data + i * to.stride, width);
}

template <class T, Isa I>
void Kernels<T, I>::backward(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s, const BackwardScratch<T>& b,
                             const T* state, const T* values, T* back, const BackwardRows<T>& io) noexcept {
  using gemm::Store;
  const Index C = x.C, K = x.K, V = x.V, P = padded(K), R = row_of(K), row = s.kt_stride;
  const gemm::BandOfA upper{0, C};
  Prefetch<T, I> prefetch{io.ahead};
  load_gradient<T, I>(x, io.grad_o, b.y);
  load_queries<T, I>(x, rule, s);
  weigh<T, I>(x, rule, s, prefetch);
  gemm::transpose<T, I>(C, V, values, V, b.vt, row);
  gemm::multiply<T, I>(gemm::BandOfC{-C, 0}, C, C, V, {b.y, V, 1}, b.vt, row, b.p, row, Store::set, prefetch);
  gather_queries<T, I>(x, s, b, state, prefetch);
  gemm::multiply<T, I>(upper, C, V, C, {s.qw + K, 1, s.qw_stride}, b.y, V, b.grad_v, V, Store::set, prefetch);
  gemm::multiply<T, I>(gemm::Full{}, C, V, K, {b.keys, R, 1}, back, V, b.grad_v, V, Store::add, prefetch);
  store_rows<T, I>(b.grad_v, V, T(1), io.grad_v, C, V);
  gemm::transpose<T, I>(K, V, back, V, b.back_t, R);
  gemm::multiply<T, I>(gemm::Full{}, C, K, V, {values, V, 1}, b.back_t, R, b.grad_k, R, Store::set, prefetch);
  for (Index a = 0; a < P; ++a) b.over[a] = a < K && !x.empty ? s.carry[a] * dot<T, I>(back + a * V, state + a * V, V) : T(0);
  for (Index a = 0; a < P; ++a) b.grad_bonus[a] = 0;
  for (Index n = blocks_of(C); n-- > 0;) {
    const Index at = block_begin(n) * R;
    copy_row<T, I>(b.over, nullptr, b.passing, P);
    if (n > 0) move_back<T, I>(x, s, b, n, prefetch);
    const BlockRows<T> rows{.q = s.q + at,
                            .k = s.k + at,
                            .decay = s.decay + at,
                            .k_block = s.k_block + at,
                            .grad_q = b.grad_q + at,
                            .grad_k = b.grad_k + at,
                            .grad_decay = b.grad_decay + at,
                            .p = b.p + block_begin(n) * (row + 1),
                            .p_stride = row,
                            .P = P,
                            .R = R,
                            .m = block_end(n, C) - block_begin(n)};
    if (rule.before)
      finish_block<T, I, true>(rows, rule, b);
    else
      finish_block<T, I, false>(rows, rule, b);
    scaled<T, I, true>(T(1), b.from_state + n * R, b.over, P);
  }
  store_rows<T, I>(b.grad_q, R, T(rule.scale), io.grad_q, C, K);
  store_rows<T, I>(b.grad_k, R, T(1), io.grad_k, C, K);
  store_rows<T, I>(b.grad_decay, R, T(1), io.grad_log_decay, C, K);
  if (io.grad_bonus) copy_row<T, I>(b.grad_bonus, nullptr, io.grad_bonus, K);
  gemm::multiply<T, I>(gemm::Full{}, K, V, C, {s.qw, 1, s.qw_stride}, b.y, V, back, V, gemm::Into<T>(s.carry), prefetch);
}

template <class T, Isa I>
void Kernels<T, I>::backward_state(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s, const BackwardScratch<T>& b,
                                   Rows<const T> grad_o, T* back) noexcept {
  load_gradient<T, I>(x, grad_o, b.y);
  load_queries<T, I>(x, rule, s);
  gemm::multiply<T, I>(gemm::Full{}, x.K, x.V, x.C, {s.qw, 1, s.qw_stride}, b.y, x.V, back, x.V, gemm::Store::set);
}

}  // namespace isomer::channel_decay_detail

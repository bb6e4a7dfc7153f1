#pragma once
// The chunk form, forward: see README.md for the derivation. For the translation units of one Isa; include vec_<isa>.h first.
#include "isomer/kernels/gemm/tile_impl.h"
#include "isomer/laws/channel_decay/channel_decay_chunk.h"
#include "isomer/laws/chunk_rows_impl.h"
#include "isomer/simd/math.h"

namespace isomer::channel_decay_detail {

using chunk::copy_row;
using chunk::dot;
using chunk::each_vector;
using chunk::Prefetch;
using chunk::scaled;

/// Tokens [begin, end) of block n of C tokens.
ISOMER_INLINE Index block_begin(Index n) { return n * kBlock; }
ISOMER_INLINE Index block_end(Index n, Index C) { return (n + 1) * kBlock < C ? (n + 1) * kBlock : C; }

/// Row j of k with the decays after it, whose product `product` moves on to the row before.
template <class T, Isa I>
ISOMER_INLINE void load_key(const Tokens<T>& x, const Scratch<T>& s, Index j, T* product, bool first) {
  using V = simd::Vec<T, I>;
  const Index P = padded(x.K);
  const T *f = x.log_decay.data + j * x.log_decay.stride, *from = x.k.data + j * x.k.stride;
  const V one = V::set(T(1));
  for (Index c = 0; c < P; c += V::lanes) {
    const V a = exp(V::load(f + c, x.K - c)), k = V::load(from + c, x.K - c);
    const V after = first ? one : V::load(product + c);
    a.store(s.decay + j * P + c);
    k.store(s.k + j * P + c);
    (k * after).store(s.k_block + j * P + c);
    (a * after).store(product + c);
  }
}

template <class T, Isa I>
void Kernels<T, I>::load(const Tokens<T>& x, Reach reach, const Scratch<T>& s, T* sv) noexcept {
  using V = simd::Vec<T, I>;
  const Index P = padded(x.K), blocks = reach == Reach::chunk ? 1 : blocks_of(x.C);
  for (Index c = 0; c < P; c += V::lanes) V::set(T(1)).store(s.carry + c);
  for (Index n = 0; n < blocks; ++n) {
    const Index begin = block_begin(n), end = reach == Reach::chunk ? x.C : block_end(n, x.C);
    T *product = s.block_decay + n * P, *entered = s.entered + n * P;
    for (Index j = end; j-- > begin;) load_key<T, I>(x, s, j, product, j + 1 == end);
    for (Index c = 0; c < P; c += V::lanes) {
      const V before = V::load(s.carry + c);
      before.store(entered + c);
      (before * V::load(product + c)).store(s.carry + c);
    }
  }
  gemm::transpose<T, I>(x.C, x.K, s.k_block, P, s.kt, s.kt_stride);
  for (Index i = 0; i < x.C; ++i) copy_row<T, I>(x.v.data + i * x.v.stride, nullptr, sv + (x.K + i) * x.V, x.V);
}

/// q with the scale, with the decays since its block began, and with those since the chunk began.
template <class T, Isa I>
void load_queries(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s) noexcept {
  using V = simd::Vec<T, I>;
  const Index P = padded(x.K);
  const V scale = V::set(T(rule.scale)), one = V::set(T(1));
  T* product = s.running;  // of the block's decays up to the last row
  for (Index i = 0; i < x.C; ++i) {
    const T *from = x.q.data + i * x.q.stride, *entered = s.entered + i / kBlock * P, *decay = s.decay + i * P;
    T *q = s.q + i * P, *q_block = s.q_block + i * P, *q_chunk = s.qw + i * s.qw_stride;
    const bool first = i % kBlock == 0;
    for (Index c = 0; c < P; c += V::lanes) {
      const V y = scale * V::load(from + c, x.K - c), old = first ? one : V::load(product + c), now = old * V::load(decay + c);
      const V seen = y * (rule.before ? old : now);
      y.store(q + c);
      seen.store(q_block + c);
      (seen * V::load(entered + c)).store(q_chunk + c, x.K - c);
      now.store(product + c);
    }
  }
}

/// Sums over `vectors` vectors of channels of q_i ∘ k_j ∘ (decays between) for the pairs of a block's m tokens, into or onto
/// sums[i][j], one vector each.
template <class T, Isa I, int vectors, bool before>
ISOMER_INLINE void pair_sums(Index m, Index P, const T* q, const T* k, const T* decay, const T* bonus, T* sums, bool add) {
  using V = simd::Vec<T, I>;
  const auto put = [&](V total, Index i, Index j) {
    T* to = sums + (i * kBlock + j) * V::lanes;
    (add ? total + V::load(to) : total).store(to);
  };
  for (Index j = 0; j < m; ++j) {
    V key[vectors], total = V::zero();
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      key[v] = V::load(k + j * P + v * V::lanes);
      const V own = before ? key[v] * V::load(bonus + v * V::lanes) : key[v];
      total = fma(V::load(q + j * P + v * V::lanes), own, total);
    }
    put(total, j, j);
    for (Index i = j + 1; i < m; ++i) {
      const T *qi = q + i * P, *ai = decay + i * P;
      V even = V::zero(), odd = V::zero();
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        const V a = V::load(ai + v * V::lanes);
        if (!before) key[v] = key[v] * a;
        V& part = v % 2 == 0 ? even : odd;
        part = fma(V::load(qi + v * V::lanes), key[v], part);
        if (before) key[v] = key[v] * a;
      }
      put(even + odd, i, j);
    }
  }
}

/// Weights between the m tokens of a block that begins at row `begin`. The six weights after the diagonal become zero: products
/// skip what lies beyond a tile (gemm::kTileRows) of the diagonal.
template <class T, Isa I, bool before>
void weigh_block(const Rule<T>& rule, const Scratch<T>& s, Index K, Index C, Index begin, Index m) noexcept {
  using V = simd::Vec<T, I>;
  constexpr Index four = 4 * V::lanes, two = 2 * V::lanes;
  alignas(64) T sums[kBlock * kBlock * V::lanes];
  const Index P = padded(K);
  const T *q = s.q + begin * P, *k = s.k + begin * P, *decay = s.decay + begin * P;
  Index c = 0;
  for (; c + four <= P; c += four) pair_sums<T, I, 4, before>(m, P, q + c, k + c, decay + c, rule.bonus + c, sums, c > 0);
  for (; c < P; c += two) pair_sums<T, I, 2, before>(m, P, q + c, k + c, decay + c, rule.bonus + c, sums, c > 0);
  for (Index i = 0; i < m; ++i) {
    T* w = s.qw + (begin + i) * s.qw_stride + K + begin;
    for (Index j = 0; j <= i; ++j) w[j] = sum(V::load(sums + (i * kBlock + j) * V::lanes));
    for (Index j = i + 1; begin + j < C && j <= i + gemm::kTileRows; ++j) w[j] = 0;
  }
}

/// Keys of the blocks before block n, in kt, take its decays with them.
template <class T, Isa I>
void move_keys(const Tokens<T>& x, const Scratch<T>& s, Index n) noexcept {
  using V = simd::Vec<T, I>;
  const T* product = s.block_decay + n * padded(x.K);
  for (Index a = 0; a < x.K; ++a) {
    const V f = V::set(product[a]);
    T* row = s.kt + a * s.kt_stride;
    each_vector<V>(block_begin(n), [&](Index j, Index count) { (f * V::load(row + j, count)).store(row + j, count); });
  }
}

/// The weights of all tokens of the chunk, behind q in qw; afterwards kt has the keys at the end of the chunk.
template <class T, Isa I>
void weigh(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s, Prefetch<T, I>& prefetch) noexcept {
  const Index P = padded(x.K);
  for (Index n = 0; n < blocks_of(x.C); ++n) {
    const Index begin = block_begin(n), m = block_end(n, x.C) - begin;
    // Whole vectors: what this writes beyond the older blocks is overwritten by the block's own weights.
    if (n > 0)
      gemm::multiply<T, I>(gemm::Full{}, m, round_up(begin, 8), x.K, {s.q_block + begin * P, P, 1}, s.kt, s.kt_stride,
                           s.qw + begin * s.qw_stride + x.K, s.qw_stride, gemm::Store::set, prefetch);
    if (rule.before)
      weigh_block<T, I, true>(rule, s, x.K, x.C, begin, m);
    else
      weigh_block<T, I, false>(rule, s, x.K, x.C, begin, m);
    if (n > 0) move_keys<T, I>(x, s, n);
  }
}

template <class T, Isa I>
void Kernels<T, I>::read(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s, const T* sv, Rows<T> o,
                         const Ahead<T>& ahead) noexcept {
  Prefetch<T, I> prefetch{ahead};
  load_queries<T, I>(x, rule, s);
  weigh<T, I>(x, rule, s, prefetch);
  // [q, weights] · [state; v] in one product; a state that is zero is left out.
  const Index skip = x.empty ? x.K : 0;
  gemm::multiply<T, I>(gemm::BandOfA{-x.C, x.K - skip}, x.C, x.V, x.K - skip + x.C, {s.qw + skip, s.qw_stride, 1},
                       sv + skip * x.V, x.V, o.data, o.stride, gemm::Store::set, prefetch);
}

template <class T, Isa I>
void Kernels<T, I>::write(const Tokens<T>& x, const Scratch<T>& s, T* sv, T* added) noexcept {
  for (Index a = 0; a < x.K && !added && !x.empty; ++a) scaled<T, I>(s.carry[a], sv + a * x.V, sv + a * x.V, x.V);
  gemm::multiply<T, I>(gemm::Full{}, x.K, x.V, x.C, {s.kt, s.kt_stride, 1}, sv + x.K * x.V, x.V, added ? added : sv, x.V,
                       added || x.empty ? gemm::Store::set : gemm::Store::add);
}

template <class T, Isa I>
void Kernels<T, I>::advance(const T* carry, const T* from, T* to, Index rows, Index V) noexcept {
  for (Index a = 0; a < rows; ++a) scaled<T, I, true>(carry[a], from + a * V, to + a * V, V);
}

}  // namespace isomer::channel_decay_detail

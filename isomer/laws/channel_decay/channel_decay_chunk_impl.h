#pragma once
// The chunk form, forward: see README.md for the derivation. For the translation units of one Isa; include vec_<isa>.h first.
#include "isomer/kernels/gemm/tile_impl.h"
#include "isomer/laws/channel_decay/channel_decay_chunk.h"
#include "isomer/laws/chunk_rows_impl.h"
#include "isomer/simd/math.h"

namespace isomer::channel_decay_detail {

using chunk::copy_row;
using chunk::each_vector;
using chunk::Prefetch;
using chunk::scaled;

/// Tokens [begin, end) of block n of C tokens.
ISOMER_INLINE Index block_begin(Index n) { return n * kBlock; }
ISOMER_INLINE Index block_end(Index n, Index C) { return (n + 1) * kBlock < C ? (n + 1) * kBlock : C; }

/// Keys [begin, end) with the decays after them, whose product moves from row to row and ends as that of all rows. Pointers are
/// locals: stores of vectors may alias what is read through a structure. `whole`: K is a multiple of a vector.
template <class T, Isa I, bool whole>
void load_keys(const Tokens<T>& x, const Scratch<T>& s, Index begin, Index end, T* product) noexcept {
  using V = simd::Vec<T, I>;
  const Index K = x.K, P = padded(K), R = row_of(K);
  const Rows<const T> f = x.log_decay, from = x.k;
  T *decay = s.decay, *k = s.k, *k_block = s.k_block;
  for (Index c = 0; c < P; c += V::lanes) {
    const auto at = [&](const Rows<const T>& rows, Index j) {
      const T* row = rows.data + j * rows.stride + c;
      return whole ? V::load(row) : V::load(row, K - c);
    };
    V after = V::set(T(1));
    for (Index j = end; j-- > begin;) {
      const V a = exp(at(f, j)), key = at(from, j);
      a.store(decay + j * R + c);
      key.store(k + j * R + c);
      (key * after).store(k_block + j * R + c);
      after = a * after;
    }
    after.store(product + c);
  }
}

template <class T, Isa I>
void Kernels<T, I>::load(const Tokens<T>& x, Reach reach, const Scratch<T>& s, T* sv) noexcept {
  using V = simd::Vec<T, I>;
  const Index P = padded(x.K), R = row_of(x.K), blocks = reach == Reach::chunk ? 1 : blocks_of(x.C);
  for (Index c = 0; c < P; c += V::lanes) V::set(T(1)).store(s.carry + c);
  for (Index n = 0; n < blocks; ++n) {
    const Index begin = block_begin(n), end = reach == Reach::chunk ? x.C : block_end(n, x.C);
    T *product = s.block_decay + n * R, *entered = s.entered + n * R, *carry = s.carry;
    if (x.K == P)
      load_keys<T, I, true>(x, s, begin, end, product);
    else
      load_keys<T, I, false>(x, s, begin, end, product);
    for (Index c = 0; c < P; c += V::lanes) {
      const V before = V::load(carry + c);
      before.store(entered + c);
      (before * V::load(product + c)).store(carry + c);
    }
  }
  if (blocks > 1) gemm::transpose<T, I>(x.C, x.K, s.k_block, R, s.kt, s.kt_stride);
  for (Index i = 0; i < x.C && sv; ++i) copy_row<T, I>(x.v.data + i * x.v.stride, nullptr, sv + (x.K + i) * x.V, x.V);
}

/// q of the block [begin, end) with the scale, with the decays since the block began and, if `entered` has those before it, with
/// those since the chunk began.
template <class T, Isa I, bool before, bool whole, bool in_chunk>
void load_queries(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s, Index begin, Index end,
                  const T* entered) noexcept {
  using V = simd::Vec<T, I>;
  const Index K = x.K, P = padded(K), R = row_of(K);
  const V scale = V::set(T(rule.scale));
  const Rows<const T> from = x.q;
  const Rows<T> q_chunk{s.qw, s.qw_stride};
  const T* decay = s.decay;
  T *q = s.q, *q_block = s.q_block;
  for (Index c = 0; c < P; c += V::lanes) {
    const V earlier = in_chunk ? V::load(entered + c) : V::zero();
    V product = V::set(T(1));  // of the block's decays up to the last row
    for (Index i = begin; i < end; ++i) {
      const T* row = from.data + i * from.stride + c;
      const V y = scale * (whole ? V::load(row) : V::load(row, K - c));
      const V now = product * V::load(decay + i * R + c), seen = y * (before ? product : now);
      y.store(q + i * R + c);
      seen.store(q_block + i * R + c);
      if (in_chunk && whole)
        (seen * earlier).store(q_chunk.data + i * q_chunk.stride + c);
      else if (in_chunk)
        (seen * earlier).store(q_chunk.data + i * q_chunk.stride + c, K - c);
      product = now;
    }
  }
}

template <class T, Isa I, bool before, bool whole>
void load_all_queries(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s) noexcept {
  for (Index n = 0; n < blocks_of(x.C); ++n)
    load_queries<T, I, before, whole, true>(x, rule, s, block_begin(n), block_end(n, x.C), s.entered + n * row_of(x.K));
}

template <class T, Isa I>
void load_queries(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s) noexcept {
  const bool whole = x.K == padded(x.K);
  if (rule.before)
    whole ? load_all_queries<T, I, true, true>(x, rule, s) : load_all_queries<T, I, true, false>(x, rule, s);
  else
    whole ? load_all_queries<T, I, false, true>(x, rule, s) : load_all_queries<T, I, false, false>(x, rule, s);
}

/// The rows of a block's m tokens, R apart.
template <class T>
struct PairRows {
  Index m, R;
  const T *q, *k, *decay, *bonus;
};

/// Where the pairs of row i of a block begin: only those with keys j ≤ i are kept.
ISOMER_INLINE constexpr Index pair_place(Index i) { return i * (i + 1) / 2; }

/// q_i ∘ k_j ∘ (decays between), added up over `vectors` vectors of channels, for the keys j and, if `two`, j + 1 and all i ≥ j
/// of the block: into sums[pair_place(i) + j], a vector each, or onto it. Two keys, because they share the loads of q and of the
/// decays.
template <class T, Isa I, int vectors, bool before, bool two, bool add>
ISOMER_INLINE void pair_sums(PairRows<T> r, Index j, T* sums) {
  using V = simd::Vec<T, I>;
  constexpr int keys = two ? 2 : 1;
  const auto at = [&](const T* x, Index i, int v) { return V::load(x + i * r.R + v * V::lanes); };
  const auto put = [&](V total, Index i, Index key) {
    T* to = sums + (pair_place(i) + key) * V::lanes;
    (add ? total + V::load(to) : total).store(to);
  };
  V key[keys][vectors], own[keys], next = V::zero();
#pragma GCC unroll 2
  for (int n = 0; n < keys; ++n) {
    own[n] = V::zero();
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      key[n][v] = at(r.k, j + n, v);
      own[n] = fma(at(r.q, j + n, v), before ? key[n][v] * V::load(r.bonus + v * V::lanes) : key[n][v], own[n]);
    }
    put(own[n], j + n, j + n);
  }
  if constexpr (two) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const V moved = key[0][v] * at(r.decay, j + 1, v);
      next = fma(at(r.q, j + 1, v), before ? key[0][v] : moved, next);
      key[0][v] = moved;
    }
    put(next, j + 1, j);
  }
  for (Index i = j + keys; i < r.m; ++i) {
    V total[keys];
#pragma GCC unroll 2
    for (int n = 0; n < keys; ++n) total[n] = V::zero();
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const V a = at(r.decay, i, v), q = at(r.q, i, v);
#pragma GCC unroll 2
      for (int n = 0; n < keys; ++n) {
        const V moved = key[n][v] * a;
        total[n] = fma(q, before ? key[n][v] : moved, total[n]);
        key[n][v] = moved;
      }
    }
#pragma GCC unroll 2
    for (int n = 0; n < keys; ++n) put(total[n], i, j + n);
  }
}

template <class T, Isa I, int vectors, bool before, bool add>
void all_pair_sums(PairRows<T> r, T* sums) noexcept {
  Index j = 0;
  for (; j + 2 <= r.m; j += 2) pair_sums<T, I, vectors, before, true, add>(r, j, sums);
  if (j < r.m) pair_sums<T, I, vectors, before, false, add>(r, j, sums);
}

/// Weights between the m tokens of a block that begins at row `begin`. The six weights after the diagonal become zero: matrix
/// products skip what lies beyond a tile (gemm::kTileRows) of the diagonal.
template <class T, Isa I, bool before>
void weigh_block(const Rule<T>& rule, const Scratch<T>& s, Index K, Index C, Index begin, Index m) noexcept {
  using V = simd::Vec<T, I>;
  constexpr Index four = 4 * V::lanes;
  alignas(64) T sums[(pair_place(kBlock) + V::lanes) * V::lanes], weights[pair_place(kBlock) + V::lanes];
  const Index P = padded(K), R = row_of(K);
  const auto rows = [&](Index c) {
    return PairRows<T>{
        m, R, s.q + begin * R + c, s.k + begin * R + c, s.decay + begin * R + c, before ? rule.bonus + c : nullptr};
  };
  Index c = P % four;
  if (c > 0)
    all_pair_sums<T, I, 2, before, false>(rows(0), sums);
  else
    all_pair_sums<T, I, 4, before, false>(rows(0), sums), c = four;
  for (; c < P; c += four) all_pair_sums<T, I, 4, before, true>(rows(c), sums);
  const Index pairs = pair_place(m);
  for (Index p = pairs; p % V::lanes != 0; ++p) V::zero().store(sums + p * V::lanes);
  for (Index p = 0; p < pairs; p += V::lanes) V::sum_rows(sums + p * V::lanes, V::lanes).store(weights + p);
  for (Index i = 0; i < m; ++i) {
    T* w = s.qw + (begin + i) * s.qw_stride + K + begin;
    chunk::copy_row<T, I>(weights + pair_place(i), nullptr, w, i + 1);
    for (Index j = i + 1; begin + j < C && j <= i + gemm::kTileRows; ++j) w[j] = 0;
  }
}

/// Keys of the blocks before block n, in kt, take its decays with them.
template <class T, Isa I>
void move_keys(const Tokens<T>& x, const Scratch<T>& s, Index n) noexcept {
  using V = simd::Vec<T, I>;
  const T* product = s.block_decay + n * row_of(x.K);
  for (Index a = 0; a < x.K; ++a) {
    const V f = V::set(product[a]);
    T* row = s.kt + a * s.kt_stride;
    each_vector<V>(block_begin(n), [&](Index j, Index count) { (f * V::load(row + j, count)).store(row + j, count); });
  }
}

/// The weights of all tokens of the chunk, behind q in qw; afterwards kt has the keys at the end of the chunk.
template <class T, Isa I>
void weigh(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s, Prefetch<T, I>& prefetch) noexcept {
  const Index R = row_of(x.K);
  for (Index n = 0; n < blocks_of(x.C); ++n) {
    const Index begin = block_begin(n), m = block_end(n, x.C) - begin;
    // Whole vectors: what this writes beyond the older blocks is overwritten by the block's own weights.
    if (n > 0)
      gemm::multiply<T, I>(gemm::Full{}, m, round_up(begin, simd::Vec<T, I>::lanes), x.K, {s.q_block + begin * R, R, 1}, s.kt,
                           s.kt_stride, s.qw + begin * s.qw_stride + x.K, s.qw_stride, gemm::Store::set, prefetch);
    if (rule.before)
      weigh_block<T, I, true>(rule, s, x.K, x.C, begin, m);
    else
      weigh_block<T, I, false>(rule, s, x.K, x.C, begin, m);
    if (n > 0) move_keys<T, I>(x, s, n);
  }
}

template <class T, Isa I>
void Kernels<T, I>::read(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s, const T* sv, Rows<T> o,
                         const PrefetchList<T>& ahead) noexcept {
  Prefetch<T, I> prefetch{ahead};
  load_queries<T, I>(x, rule, s);
  weigh<T, I>(x, rule, s, prefetch);
  // [q, weights] · [state; v] in one matrix product; a state that is zero is left out.
  const Index skip = x.empty ? x.K : 0;
  gemm::multiply<T, I>(gemm::BandOfA{-x.C, x.K - skip}, x.C, x.V, x.K - skip + x.C, {s.qw + skip, s.qw_stride, 1},
                       sv + skip * x.V, x.V, o.data, o.stride, gemm::Store::set, prefetch);
}

/// [C,K] keys at the end of the chunk; those of one block are there as they are.
template <class T>
ISOMER_INLINE gemm::Strided<T> keys_at_end(const Tokens<T>& x, Reach reach, const Scratch<T>& s) {
  if (reach == Reach::block && blocks_of(x.C) > 1) return {s.kt, 1, s.kt_stride};
  return {s.k_block, row_of(x.K), 1};
}

template <class T, Isa I>
void Kernels<T, I>::write(const Tokens<T>& x, Reach reach, const Scratch<T>& s, T* sv, const PrefetchList<T>& ahead) noexcept {
  Prefetch<T, I> prefetch{ahead};
  const gemm::Strided<T> keys = keys_at_end(x, reach, s), transposed{keys.data, keys.column, keys.row};
  const gemm::Into<T> into = x.empty ? gemm::Into<T>(gemm::Store::set) : gemm::Into<T>(s.carry);
  gemm::multiply<T, I>(gemm::Full{}, x.K, x.V, x.C, transposed, sv + x.K * x.V, x.V, sv, x.V, into, prefetch);
}

template <class T, Isa I>
void Kernels<T, I>::keep(Index K, Columns columns, const T* state, T* to) noexcept {
  gemm::transpose<T, I>(K, columns.width, state, columns.width, to + columns.begin * K, K);
}

template <class T, Isa I>
void Kernels<T, I>::advance(const T* carry, const T* from, T* to, Index rows, Index V) noexcept {
  for (Index a = 0; a < rows; ++a) scaled<T, I, true>(carry[a], from + a * V, to + a * V, V);
}

}  // namespace isomer::channel_decay_detail

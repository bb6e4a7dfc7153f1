#pragma once
// The chunk form, backward: see README.md for the derivation. For the translation units of one Isa.
#include "isomer/laws/channel_decay/channel_decay_chunk_impl.h"

namespace isomer::channel_decay_detail {

/// Tokens of a group. Inside a group pairs are taken one by one; the later queries of the block see all keys of a group where it
/// ends. Four keys and their gradients stay in registers.
inline constexpr Index kGroup = 4;

/// The rows of a block in the scratch, gradients that came into the block, and where those of its tokens go.
template <class T>
struct BlockRows {
  const T *q, *k, *decay, *grad_q, *grad_k;  // [m,P], rows R apart
  const T* p;                                // [m,m] gradients of the weights, rows p_stride apart
  Index p_stride, K, R, m;
  Rows<T> to_q, to_k, to_decay;
};

/// A block in one vector of channels.
template <class T, Isa I>
struct Column {
  simd::Vec<T, I> q[kBlock];  // gradients of queries, from all keys before the group at hand
  simd::Vec<T, I> passing;    // over the group at hand, to later blocks
  simd::Vec<T, I> bonus;
};

/// A group's tokens in one vector of channels, and their gradients.
template <class V, int rows>
struct Group {
  V q[rows], decay[rows], grad_q[rows], grad_k[rows], grad_decay[rows];
};

/// Keys of the group at g, where it ends, and the queries of the block after it. The group's tokens then have all but the pairs
/// between them: decays get what passes over the group, what queries at and after them read of earlier groups, and what keys
/// before them give to later ones.
template <class T, Isa I, bool before, bool full, int rows>
ISOMER_INLINE void leave_group(BlockRows<T> r, Index g, Index c, Column<T, I>& x, Group<simd::Vec<T, I>, rows>& y) {
  using V = simd::Vec<T, I>;
  const auto at = [&](const T* from, Index i) { return V::load(from + (g + i) * r.R + c); };
  V key[rows], after[rows], back[rows], product = V::set(T(1)), flow = x.passing;
#pragma GCC unroll 4
  for (int n = rows - 1; n >= 0; --n) {
    after[n] = product;
    key[n] = product * at(r.k, n);
    back[n] = V::zero();
    product = product * at(r.decay, n);
  }
  product = V::set(T(1));
  for (Index i = g + rows; i < (full ? kBlock : r.m); ++i) {
    const T* p = r.p + i * r.p_stride + g;
    const V own = at(r.q, i - g), moved = product * at(r.decay, i - g), between = before ? product : moved, q = between * own;
    V total = V::zero();
#pragma GCC unroll 4
    for (int n = 0; n < rows; ++n) {
      total = fma(V::set(p[n]), key[n], total);
      back[n] = fma(V::set(p[n]), q, back[n]);
    }
    flow = fma(own, x.q[i], flow);
    x.q[i] = fma(between, total, x.q[i]);
    product = moved;
  }
  V read = V::zero();
#pragma GCC unroll 4
  for (int n = 0; n < rows; ++n) {
    const V later = product * at(r.grad_k, n);
    back[n] = back[n] + later;
    y.grad_k[n] = after[n] * back[n];
    y.grad_decay[n] = flow;
    flow = fma(key[n], back[n], flow);
    x.passing = fma(key[n], later, x.passing);
    y.q[n] = at(r.q, n), y.decay[n] = at(r.decay, n), y.grad_q[n] = x.q[g + n];
  }
#pragma GCC unroll 4
  for (int i = rows - 1; i >= 0; --i) {
    const V ending = y.q[i] * y.grad_q[i];
    y.grad_decay[i] = y.grad_decay[i] + (before ? read : read + ending);
    read = read + ending;
  }
}

/// All gradients of the group at g. Pairs of its tokens: each key goes forward through its decays, and what it gives to q with
/// it; then back: what the later queries give to it, and where both meet, at each decay, what they give to that.
template <class T, Isa I, bool before, bool full, int rows>
ISOMER_INLINE void finish_group(BlockRows<T> r, const Rule<T>& rule, Index g, Index c, Column<T, I>& x) {
  using V = simd::Vec<T, I>;
  const auto put = [&](V gradient, const Rows<T>& to, int i) {
    T* row = to.data + (g + i) * to.stride + c;
    full ? gradient.store(row) : gradient.store(row, r.K - c);
  };
  Group<V, rows> y;
  leave_group<T, I, before, full>(r, g, c, x, y);
  const V scale = V::set(T(rule.scale)), bonus = before ? V::load(rule.bonus + c) : V::set(T(1));
#pragma GCC unroll 4
  for (int j = 0; j < rows; ++j) {
    const auto p = [&](int i) { return V::set(r.p[(g + i) * r.p_stride + g + j]); };
    V keys[rows], home = V::zero();
    keys[j] = V::load(r.k + (g + j) * r.R + c);
    const V own = p(j), u = before ? own * bonus : own;
    y.grad_q[j] = fma(u, keys[j], y.grad_q[j]);
    if (before) x.bonus = fma(own * keys[j], y.q[j], x.bonus);
#pragma GCC unroll 4
    for (int i = j + 1; i < rows; ++i) {
      keys[i] = keys[i - 1] * y.decay[i];
      y.grad_q[i] = fma(p(i), before ? keys[i - 1] : keys[i], y.grad_q[i]);
    }
#pragma GCC unroll 4
    for (int i = rows - 1; i > j; --i) {
      if (!before) home = fma(p(i), y.q[i], home);
      y.grad_decay[i] = fma(keys[i], home, y.grad_decay[i]);
      home = home * y.decay[i];
      if (before) home = fma(p(i), y.q[i], home);
    }
    put(scale * y.grad_q[j], r.to_q, j);
    put(y.grad_k[j] + fma(u, y.q[j], home), r.to_k, j);
    put(y.grad_decay[j], r.to_decay, j);
  }
}

/// All gradients of a block's tokens. `full`: it has kBlock of them, and K is a multiple of a vector.
template <class T, Isa I, bool before, bool full>
void finish_block(BlockRows<T> r, const Rule<T>& rule, const BackwardScratch<T>& b) noexcept {
  using V = simd::Vec<T, I>;
  const Index m = full ? kBlock : r.m;
  for (Index c = 0; c < r.K; c += V::lanes) {
    Column<T, I> x;
    x.passing = V::load(b.passing + c);
    x.bonus = V::load(b.grad_bonus + c);
    // What came to queries is where the block begins.
    V product = V::set(T(1));
    for (Index i = 0; i < m; ++i) {
      const V moved = product * V::load(r.decay + i * r.R + c);
      x.q[i] = (before ? product : moved) * V::load(r.grad_q + i * r.R + c);
      product = moved;
    }
    for (Index g = 0; g < m; g += kGroup) switch (m - g) {
        case 1: finish_group<T, I, before, full, 1>(r, rule, g, c, x); break;
        case 2: finish_group<T, I, before, full, 2>(r, rule, g, c, x); break;
        case 3: finish_group<T, I, before, full, 3>(r, rule, g, c, x); break;
        default: finish_group<T, I, before, full, 4>(r, rule, g, c, x); break;
      }
    x.bonus.store(b.grad_bonus + c);
  }
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

/// grad_q at the beginning of each block: from the state, and from the keys of earlier blocks. Afterwards b.from_state has what
/// the state's decays get from each block's outputs.
template <class T, Isa I>
void gather_queries(const Tokens<T>& x, const Scratch<T>& s, const BackwardScratch<T>& b, const T* state_t,
                    Prefetch<T, I>& prefetch) noexcept {
  using V = simd::Vec<T, I>;
  const Index P = padded(x.K), R = row_of(x.K), C = x.C, blocks = blocks_of(C);
  if (!x.empty)
    gemm::multiply<T, I>(gemm::Full{}, C, x.K, x.V, {b.y, x.V, 1}, state_t, x.K, b.grad_q, R, gemm::Store::set, prefetch);
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
    if (n == 0) continue;
    const Index last = block_begin(n - 1);
    for (Index c = 0; c < P; c += V::lanes) {
      const V f = V::load(s.block_decay + (n - 1) * R + c);
      for (Index j = 0; j < last; ++j) (f * V::load(b.keys + j * R + c)).store(b.keys + j * R + c);
    }
    for (Index j = last; j < begin; ++j) copy_row<T, I>(s.k_block + j * R, nullptr, b.keys + j * R, P);
    gemm::multiply<T, I>(gemm::Full{}, end - begin, x.K, begin, {b.p + begin * s.kt_stride, s.kt_stride, 1}, b.keys, R,
                         b.grad_q + begin * R, R, gemm::Store::add, prefetch);
  }
}

/// b.over = what of the state passes over the whole chunk.
template <class T, Isa I>
void pass_over(const Tokens<T>& x, const Scratch<T>& s, const BackwardScratch<T>& b, const T* state_t) noexcept {
  using V = simd::Vec<T, I>;
  const Index R = row_of(x.K);
  for (Index c = 0; c < padded(x.K); c += V::lanes) {
    V even = V::zero(), odd = V::zero();
    for (Index i = 0; i < x.V && !x.empty; ++i) {
      const V sum = fma(V::load(state_t + i * x.K + c, x.K - c), V::load(b.back_t + i * R + c, x.K - c), even);
      even = odd, odd = sum;
    }
    (V::load(s.carry + c) * (even + odd)).store(b.over + c);
  }
}

/// b.y = the gradient of o.
template <class T, Isa I>
void load_gradient(const Tokens<T>& x, Rows<const T> grad_o, T* y) noexcept {
  for (Index i = 0; i < x.C && grad_o.data; ++i) copy_row<T, I>(grad_o.data + i * grad_o.stride, nullptr, y + i * x.V, x.V);
  for (Index i = 0; i < x.C * x.V && !grad_o.data; ++i) y[i] = 0;
}

/// The rows from row i on.
template <class T>
ISOMER_INLINE Rows<T> from_row(Rows<T> rows, Index i) {
  return {rows.data + i * rows.stride, rows.stride};
}

template <class T, Isa I>
void Kernels<T, I>::backward(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s, const BackwardScratch<T>& b,
                             const T* state_t, T* back, const BackwardRows<T>& io) noexcept {
  using gemm::Store;
  const Index C = x.C, K = x.K, V = x.V, P = padded(K), R = row_of(K), row = s.kt_stride;
  // What nobody wants goes into one row, over and over.
  const auto wanted = [&](Rows<T> rows) { return rows.data ? rows : Rows<T>{b.nowhere, 0}; };
  const Rows<T> grad_q = wanted(io.grad_q), grad_k = wanted(io.grad_k), grad_decay = wanted(io.grad_log_decay);
  const Rows<T> grad_v = wanted(io.grad_v);
  Prefetch<T, I> prefetch{io.ahead};
  load_gradient<T, I>(x, io.grad_o, b.y);
  load_queries<T, I>(x, rule, s);
  weigh<T, I>(x, rule, s, prefetch);
  gemm::transpose<T, I>(C, V, x.v.data, x.v.stride, b.vt, row);
  gemm::multiply<T, I>(gemm::BandOfC{-C, 0}, C, C, V, {b.y, V, 1}, b.vt, row, b.p, row, Store::set, prefetch);
  gather_queries<T, I>(x, s, b, state_t, prefetch);
  gemm::multiply<T, I>(gemm::BandOfA{0, C}, C, V, C, {s.qw + K, 1, s.qw_stride}, b.y, V, grad_v.data, grad_v.stride, Store::set,
                       prefetch);
  gemm::multiply<T, I>(gemm::Full{}, C, V, K, keys_at_end(x, Reach::block, s), back, V, grad_v.data, grad_v.stride, Store::add,
                       prefetch);
  gemm::transpose<T, I>(K, V, back, V, b.back_t, R);
  gemm::multiply<T, I>(gemm::Full{}, C, K, V, {b.vt, 1, row}, b.back_t, R, b.grad_k, R, Store::set, prefetch);
  pass_over<T, I>(x, s, b, state_t);
  for (Index a = 0; a < P; ++a) b.grad_bonus[a] = 0;
  for (Index n = blocks_of(C); n-- > 0;) {
    const Index begin = block_begin(n), at = begin * R;
    copy_row<T, I>(b.over, nullptr, b.passing, P);
    if (n > 0) move_back<T, I>(x, s, b, n, prefetch);
    const BlockRows<T> rows{.q = s.q + at,
                            .k = s.k + at,
                            .decay = s.decay + at,
                            .grad_q = b.grad_q + at,
                            .grad_k = b.grad_k + at,
                            .p = b.p + begin * (row + 1),
                            .p_stride = row,
                            .K = K,
                            .R = R,
                            .m = block_end(n, C) - begin,
                            .to_q = from_row(grad_q, begin),
                            .to_k = from_row(grad_k, begin),
                            .to_decay = from_row(grad_decay, begin)};
    const bool full = rows.m == kBlock && K == P;
    if (rule.before)
      full ? finish_block<T, I, true, true>(rows, rule, b) : finish_block<T, I, true, false>(rows, rule, b);
    else
      full ? finish_block<T, I, false, true>(rows, rule, b) : finish_block<T, I, false, false>(rows, rule, b);
    scaled<T, I, true>(T(1), b.from_state + n * R, b.over, P);
  }
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

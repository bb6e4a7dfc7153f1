#pragma once
// The gradients of S6 on a chunk of some channels. A tile is a few numbers of state of a vector of channels: it goes through the
// chunk forward and back while its state, its gradient and that of its a stay in registers, and what it keeps of the tokens in
// between stays in L1. For the translation units of one Isa; include vec_<isa>.h first.
#include "isomer/laws/scan/scan_s6_impl.h"

namespace isomer::scan_detail {

/// A vector of channels through the chunk, [count,lanes] each: s, u = s x, y, and Σ (g∘w) a and Σ g b over the tiles so far.
template <class T>
struct S6Columns {
  T *step, *u, *y, *rate, *from_b;
};

/// Where a tile begins, in the blocks of S6Block and S6Backward, and what it keeps: of tile·count vectors each.
template <class T>
struct S6Tile {
  Index place, n;     // of its first number in a state, of its first row of b and c
  bool first, early;  // the first vector of channels: sums begin; the first tile: prefetches rows of the chunk before
  T *decays, *kept, *sums_b, *sums_c;
};

/// The columns of channels c … c + lanes − 1.
template <class T, Isa I>
ISOMER_INLINE S6Columns<T> s6_columns(const S6Tokens<T>& x, const S6Backward<T>& io, Index c) {
  const Index size = x.count * simd::Vec<T, I>::lanes;
  T* begin = io.scratch + 5 * x.count * c;
  return {begin, begin + size, begin + 2 * size, begin + 3 * size, begin + 4 * size};
}

/// Prefetches channel c of row t.
template <class... R>
ISOMER_INLINE void ask_row(Index t, Index c, const R&... rows) {
  ((rows.data != nullptr ? __builtin_prefetch(rows.data + t * rows.stride + c, 0, 2) : void()), ...);
}

/// Loads channels c … c + lanes − 1. Is every exponent of theirs in the safe range?
template <class T, Isa I>
bool s6_load(const S6Tokens<T>& x, const S6Block<T>& block, const S6Backward<T>& io, const S6Columns<T>& to, Index c) noexcept {
  using V = simd::Vec<T, I>;
  const Index left = x.width - c;
  V top = V::zero();
  for (Index t = 0; t < x.count; ++t) {
    const V step = V::load(row<const T, I>(x.step, t, c), left);
    top = max(top, abs(step));
    step.store(to.step + t * V::lanes);
    (step * V::load(row<const T, I>(x.x, t, c), left)).store(to.u + t * V::lanes);
    load_or_zero<T, I>(io.grad_o, t, c, left).store(to.y + t * V::lanes);
    V::zero().store(to.rate + t * V::lanes);
    V::zero().store(to.from_b + t * V::lanes);
  }
  return is_safe<T, I>(top, block, c);
}

/// Decays, what they keep of the state before, and dc.
template <class T, Isa I, bool tame, int tile>
void s6_tile_forward(const S6Tokens<T>& x, const S6Block<T>& block, const T* before, const S6Backward<T>& io,
                     const S6Columns<T>& in, const S6Tile<T>& at, Index c) noexcept {
  using V = simd::Vec<T, I>;
  V a[tile], h[tile];
#pragma GCC unroll 4
  for (int i = 0; i < tile; ++i) {
    a[i] = V::load(block.a + at.place + i * kBlock);
    h[i] = V::load(before + at.place + i * kBlock);
  }
  // Locals: stores of vectors may alias what is read through a structure.
  const Index count = x.count, chunk = io.chunk, stride = x.b.stride;
  const bool first = at.first, early = at.early && x.before >= chunk;
  const T *b = x.b.data + at.n, *steps = in.step, *us = in.u, *ys = in.y;
  T *decays = at.decays, *kept = at.kept, *sums = at.sums_c;
  for (Index t = 0; t < count; ++t) {
    if (early) ask_row(t - chunk, c, x.x, x.step);
    const V step = V::load(steps + t * V::lanes), u = V::load(us + t * V::lanes), y = V::load(ys + t * V::lanes);
#pragma GCC unroll 4
    for (int i = 0; i < tile; ++i) {
      const Index place = (t * tile + i) * V::lanes;
      const V decay = exp2_product<tame>(step, a[i]), keeps = decay * h[i];
      h[i] = fma(u, V::set(b[i]), keeps);
      decay.store(decays + place);
      keeps.store(kept + place);
      fma(y, h[i], first ? V::zero() : V::load(sums + place)).store(sums + place);
    }
    b += stride;
  }
}

/// Everything else, from the last token to the first.
template <class T, Isa I, int tile>
void s6_tile_back(const S6Tokens<T>& x, const S6Block<T>& block, const S6Backward<T>& io, const S6Columns<T>& in,
                  const S6Tile<T>& at, Index c) noexcept {
  using V = simd::Vec<T, I>;
  V a[tile], back[tile], grad_a[tile];
#pragma GCC unroll 4
  for (int i = 0; i < tile; ++i) {
    a[i] = V::load(block.a + at.place + i * kBlock);
    back[i] = V::load(io.back + at.place + i * kBlock);
    grad_a[i] = V::zero();
  }
  // Locals: stores of vectors may alias what is read through a structure.
  const Index chunk = io.chunk, b_stride = x.b.stride, c_stride = x.c.stride;
  const bool first = at.first, early = at.early && x.before >= chunk;
  const T *bs = x.b.data + at.n, *cs = x.c.data + at.n, *steps = in.step, *us = in.u, *ys = in.y;
  const T *decays = at.decays, *kept = at.kept;
  T *sums = at.sums_b, *rates = in.rate, *froms = in.from_b;
  for (Index t = x.count; t-- > 0;) {
    if (early) ask_row(t - chunk, c, io.grad_o, io.grad_x, io.grad_step);
    const T *b = bs + t * b_stride, *c_row = cs + t * c_stride;
    const V step = V::load(steps + t * V::lanes), u = V::load(us + t * V::lanes), y = V::load(ys + t * V::lanes);
    V rate = V::load(rates + t * V::lanes), from_b = V::load(froms + t * V::lanes);
#pragma GCC unroll 4
    for (int i = 0; i < tile; ++i) {
      const Index place = (t * tile + i) * V::lanes;
      const V g = fma(V::set(c_row[i]), y, back[i]), pull = g * V::load(kept + place);
      back[i] = g * V::load(decays + place);
      fma(g, u, first ? V::zero() : V::load(sums + place)).store(sums + place);
      rate = fma(pull, a[i], rate);
      from_b = fma(g, V::set(b[i]), from_b);
      grad_a[i] = fma(pull, step, grad_a[i]);
    }
    rate.store(rates + t * V::lanes);
    from_b.store(froms + t * V::lanes);
  }
#pragma GCC unroll 4
  for (int i = 0; i < tile; ++i) {
    back[i].store(io.back + at.place + i * kBlock);
    grad_a[i].store(io.grad_a + at.place + i * kBlock);
  }
}

/// What the tiles have added up for channels c …: the gradients of x, step and d.
template <class T, Isa I>
void s6_finish(const S6Tokens<T>& x, const S6Block<T>& block, const S6Backward<T>& io, const S6Columns<T>& in, Index c) noexcept {
  using V = simd::Vec<T, I>;
  // a was in units of log 2.
  const V unit = V::set(T(0.69314718055994530942)), d = V::load(block.d + c);
  const Index left = x.width - c;
  V grad_d = V::zero();
  for (Index t = x.count; t-- > 0;) {
    const V value = V::load(row<const T, I>(x.x, t, c), left), y = V::load(in.y + t * V::lanes);
    const V from_b = V::load(in.from_b + t * V::lanes);
    store_if<T, I>(fma(V::load(in.step + t * V::lanes), from_b, d * y), io.grad_x, t, c, left);
    store_if<T, I>(fma(value, from_b, unit * V::load(in.rate + t * V::lanes)), io.grad_step, t, c, left);
    grad_d = fma(y, value, grad_d);
  }
  grad_d.store(io.grad_d + c);
}

/// to(t, i) = the sum of the lanes of sums[t·tile + i].
template <class T, Isa I, int tile>
void s6_sums(const T* sums, Index count, T* to, Index stride) noexcept {
  using V = simd::Vec<T, I>;
  const Index all = count * tile;
  T few[V::lanes];
  for (Index r = 0; r < all; r += V::lanes) {
    const Index left = all - r < V::lanes ? all - r : V::lanes;
    if (left == V::lanes)
      V::sum_rows(sums + r * V::lanes, V::lanes).store(few);
    else
      for (Index l = 0; l < left; ++l) few[l] = sum(V::load(sums + (r + l) * V::lanes));
    for (Index l = 0; l < left; ++l) to[(r + l) / tile * stride + (r + l) % tile] = few[l];
  }
}

/// Numbers n … n + tile − 1 of the state of all channels.
template <class T, Isa I, int tile>
void s6_tile(const S6Tokens<T>& x, const S6Block<T>& block, const T* before, const S6Backward<T>& io, const bool* tame,
             Index n) noexcept {
  using V = simd::Vec<T, I>;
  // Whole pages apart, the sums a token later: a load waits for a store before it to the same place of any page.
  constexpr Index page = Index(4096 / sizeof(T));
  const Index size = round_up(x.count * kS6Tile * V::lanes, page);
  T* decays = io.scratch + 5 * x.count * round_up(x.width, V::lanes);
  T *sums_b = decays + 2 * size + tile * V::lanes, *sums_c = sums_b + size;
  for (Index c = 0; c < x.width; c += V::lanes) {
    const S6Columns<T> columns = s6_columns<T, I>(x, io, c);
    const S6Tile<T> at{.place = c / kBlock * x.N * kBlock + n * kBlock + c % kBlock,
                       .n = n,
                       .first = c == 0,
                       .early = n == 0,
                       .decays = decays,
                       .kept = decays + size,
                       .sums_b = sums_b,
                       .sums_c = sums_c};
    if (tame[c / V::lanes])
      s6_tile_forward<T, I, true, tile>(x, block, before, io, columns, at, c);
    else
      s6_tile_forward<T, I, false, tile>(x, block, before, io, columns, at, c);
    s6_tile_back<T, I, tile>(x, block, io, columns, at, c);
  }
  s6_sums<T, I, tile>(sums_b, x.count, io.grad_b.data + n, io.grad_b.stride);
  s6_sums<T, I, tile>(sums_c, x.count, io.grad_c.data + n, io.grad_c.stride);
}

template <class T, Isa I>
void Kernels<T, I>::s6_backward(const S6Tokens<T>& x, const S6Block<T>& block, const T* before,
                                const S6Backward<T>& io) noexcept {
  constexpr Index lanes = simd::Vec<T, I>::lanes;
  for (Index i = 0; i < ceil_div(x.width, kBlock) * x.N * kBlock; i += Index(64 / sizeof(T))) __builtin_prefetch(before + i);
  bool tame[kS6Widest];
  for (Index c = 0; c < x.width; c += lanes) tame[c / lanes] = s6_load<T, I>(x, block, io, s6_columns<T, I>(x, io, c), c);
  Index n = 0;
  for (; n + kS6Tile <= x.N; n += kS6Tile) s6_tile<T, I, kS6Tile>(x, block, before, io, tame, n);
  for (; n < x.N; ++n) s6_tile<T, I, 1>(x, block, before, io, tame, n);
  for (Index c = 0; c < x.width; c += lanes) s6_finish<T, I>(x, block, io, s6_columns<T, I>(x, io, c), c);
}

}  // namespace isomer::scan_detail

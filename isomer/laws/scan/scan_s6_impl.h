#pragma once
// S6 on a chunk of a block of channels. Vectors hold channels, the state [N,kBlock] stays in L1, and the exponential is most of
// the work. For the translation units of one Isa; include vec_<isa>.h first.
#include "isomer/laws/scan/scan_chunk_impl.h"

namespace isomer::scan_detail {

template <class T>
struct Exp2;
template <>
struct Exp2<float> {
  // Adding 1.5·2^23 rounds to an integer and leaves it in the low bits.
  static constexpr float kMagic = 0x1.8p23f, kBias = 127, kSafe = 125;
  // The rest of 2^r after 1 on |r| ≤ 1/2, relative error 2^-23.4 (simd/minimax.py): decays of 1 are exact, and the share 1 − 2^x
  // that is forgotten has a relative error below 3 epsilon however small it is.
  static constexpr float kRest[] = {0.6931469764f, 0.2402224046f, 0.05550735025f, 0.009671618995f, 0.001326459276f};
};
template <>
struct Exp2<double> {
  static constexpr double kMagic = 0x1.8p52, kBias = 1023, kSafe = 1021;
  static constexpr double kRest[] = {0.693147180559945326,     0.240226506959101319,   0.0555041086648200685,
                                     0.00961812910759384773,   0.00133335581467773122, 0.000154035304574911159,
                                     0.0000152527334913421998, 1.32154350780422119e-6, 1.01781999910201394e-7,
                                     7.07382067999596623e-9,   4.43475518235204241e-10};
};

/// 2^{s·a}. tame: |s·a| is below kSafe; else it goes to 0 and inf beyond the range. Both give the same bits where both are right.
template <bool tame, class T, Isa I>
ISOMER_INLINE simd::Vec<T, I> exp2_product(simd::Vec<T, I> s, simd::Vec<T, I> a) {
  using V = simd::Vec<T, I>;
  using C = Exp2<T>;
  const V magic = V::set(C::kMagic), one = V::set(T(1));
  if constexpr (tame) {
    const V n = fma(s, a, magic), r = fma(s, a, magic - n);
    // Into the exponent by an integer addition: a product would wait for the ports of the others.
    return add_exponent(fma(simd::internal::polynomial(r, C::kRest), r, one), n);
  } else {
    // This order of arguments keeps a NaN.
    const V n = min(V::set(C::kMagic + C::kBias + 1), max(V::set(C::kMagic - C::kBias), fma(s, a, magic)));
    const V r = min(one, max(-one, fma(s, a, magic - n)));
    const V p = fma(simd::internal::polynomial(r, C::kRest), r, one);
    return p * low_bits_to_exponent(n + V::set(C::kBias));
  }
}

/// Rows ahead that are prefetched: neighbouring tokens are a page or so apart, which the hardware does not foresee.
inline constexpr Index kAhead = 8;

/// Prefetches the line of row t + kAhead that holds channel c, of every tensor; `end` tokens are left of the sequence.
template <class T, Isa I, class... R>
ISOMER_INLINE void prefetch_rows(Index end, Index t, Index c, const R&... rows) {
  if (t + kAhead >= end) return;
  ((rows.data != nullptr ? __builtin_prefetch(rows.data + (t + kAhead) * rows.stride + c) : void()), ...);
}

/// Two vectors of channels at a time share what belongs to the state: b and c.
template <class T, Isa I>
inline constexpr int kPair = 2 * simd::Vec<T, I>::lanes <= kBlock ? 2 : 1;

/// Are the exponents of channels c … in the safe range, whose largest |step| is `top`?
template <class T, Isa I>
ISOMER_INLINE bool is_safe(simd::Vec<T, I> top, const S6Block<T>& block, Index c) {
  // A NaN among the steps is kept or not by max: where it is lost, the tame arithmetic hands it on as well.
  return largest(top) * block.largest[c / kBlock] < Exp2<T>::kSafe;
}
template <class T, Isa I>
ISOMER_INLINE bool is_tame(const S6Tokens<T>& x, const S6Block<T>& block, Index c) {
  using V = simd::Vec<T, I>;
  V top = V::zero();
  for (Index t = 0; t < x.count; ++t)
    for (int i = 0; i < kPair<T, I>; ++i)
      top = max(top, abs(V::load(row<const T, I>(x.step, t, c + i * V::lanes), x.width - c - i * V::lanes)));
  return is_safe<T, I>(top, block, c);
}

template <class T, Isa I, bool tame>
void s6_forward_pair(const S6Tokens<T>& x, const S6Block<T>& block, T* state, const Rows<T>& o, Index c) noexcept {
  using V = simd::Vec<T, I>;
  const auto at = [&](int i) { return c + i * V::lanes; };
  const auto left = [&](int i) { return x.width - at(i); };
  // Locals: stores of vectors may alias what is read through a structure.
  const Index N = x.N;
  const T* a = block.a;
  for (Index t = 0; t < x.count; ++t) {
    prefetch_rows<T, I>(x.count + x.after, t, c, x.x, x.step, o);
    V step[kPair<T, I>], u[kPair<T, I>], y[kPair<T, I>];
#pragma GCC unroll 2
    for (int i = 0; i < kPair<T, I>; ++i) {
      const V in = V::load(row<const T, I>(x.x, t, at(i)), left(i));
      step[i] = V::load(row<const T, I>(x.step, t, at(i)), left(i));
      u[i] = step[i] * in;
      y[i] = V::load(block.d + at(i)) * in;
    }
    const T *b = x.b.data + t * x.b.stride, *cs = x.c.data + t * x.c.stride;
#pragma GCC unroll 2
    for (Index n = 0; n < N; ++n) {
      const V bn = V::set(b[n]), cn = V::set(cs[n]);
#pragma GCC unroll 2
      for (int i = 0; i < kPair<T, I>; ++i) {
        const Index place = n * kBlock + at(i);
        const V decay = exp2_product<tame>(step[i], V::load(a + place));
        const V h = fma(decay, V::load(state + place), u[i] * bn);
        h.store(state + place);
        y[i] = fma(cn, h, y[i]);
      }
    }
    if (o.data == nullptr) continue;
#pragma GCC unroll 2
    for (int i = 0; i < kPair<T, I>; ++i) y[i].store(row<T, I>(o, t, at(i)), left(i));
  }
}

template <class T, Isa I>
void Kernels<T, I>::s6_forward(const S6Tokens<T>& x, const S6Block<T>& block, T* state, Rows<T> o) noexcept {
  for (Index c = 0; c < x.width; c += kPair<T, I> * simd::Vec<T, I>::lanes) {
    if (is_tame<T, I>(x, block, c))
      s6_forward_pair<T, I, true>(x, block, state, o, c);
    else
      s6_forward_pair<T, I, false>(x, block, state, o, c);
  }
}

/// 2^x; 0 and inf beyond the range.
template <class T, Isa I>
ISOMER_INLINE simd::Vec<T, I> exp2_clamped(simd::Vec<T, I> x) {
  using V = simd::Vec<T, I>;
  using C = Exp2<T>;
  const V magic = V::set(C::kMagic + C::kBias);
  // This order of arguments keeps a NaN.
  const V y = min(V::set(C::kBias + 1), max(V::set(-C::kBias), x)), n = y + magic, r = y - (n - magic);
  return fma(simd::internal::polynomial(r, C::kRest), r, V::set(T(1))) * low_bits_to_exponent(n);
}

/// One token of channels c … c + count − 1, at most as many as a vector has lanes, so that what belongs to a channel is made and
/// put together by vectors.
template <class T, Isa I>
ISOMER_INLINE void s6_step_channels(const S6Tokens<T>& x, const S6Step<T>& s, const Rows<T>& o, Index t, Index c, Index count) {
  using V = simd::Vec<T, I>;
  const T *b = x.b.data + t * x.b.stride, *cs = x.c.data + t * x.c.stride;
  const V in = V::load(row<const T, I>(x.x, t, c), count), step = V::load(row<const T, I>(x.step, t, c), count);
  T inputs[V::lanes], rates[V::lanes], sums[V::lanes * V::lanes];
  (step * in).store(inputs);
  (step * V::set(T(1.4426950408889634074))).store(rates);
  for (Index i = 0; i < count; ++i) {
    const V u = V::set(inputs[i]), rate = V::set(rates[i]);
    const T *a = s.a.data + (c + i) * s.a.stride, *from = s.from.data + (c + i) * s.from.stride;
    T* to = s.to.data + (c + i) * s.to.stride;
    V y = V::zero();
    chunk::each_vector<V>(x.N, [&](Index n, Index left) {
      const V decay = exp2_clamped(rate * V::load(a + n, left));
      const V h = fma(decay, V::load(from + n, left), u * V::load(b + n, left));
      h.store(to + n, left);
      y = fma(V::load(cs + n, left), h, y);
    });
    y.store(sums + i * V::lanes);
  }
  for (Index i = count; i < V::lanes; ++i) V::zero().store(sums + i * V::lanes);
  const V d = s.d == nullptr ? V::zero() : V::load(s.d + c, count);
  fma(d, in, V::sum_rows(sums, V::lanes)).store(row<T, I>(o, t, c), count);
}

template <class T, Isa I>
void Kernels<T, I>::s6_step(const S6Tokens<T>& x, const S6Step<T>& s, Rows<T> o) noexcept {
  constexpr Index lanes = simd::Vec<T, I>::lanes;
  S6Step<T> state = s;
  for (Index t = 0; t < x.count; ++t) {
    Index c = 0;
    for (; c + lanes <= x.width; c += lanes) s6_step_channels<T, I>(x, state, o, t, c, lanes);
    if (c < x.width) s6_step_channels<T, I>(x, state, o, t, c, x.width - c);
    state.from = {s.to.data, s.to.stride};
  }
}

}  // namespace isomer::scan_detail

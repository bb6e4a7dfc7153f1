#pragma once
// S6 on a chunk of a block of channels. Vectors hold channels, the state [N,kBlock] stays in L1, and the exponential is most of
// the work. For the translation units of one Isa; include vec_<isa>.h first.
#include "isomer/laws/scan/scan_chunk_impl.h"

namespace isomer::scan_detail {

template <class T>
struct Exp2;
template <>
struct Exp2<float> {
  // 1.5·2^23 rounds to an integer, and leaves it plus the bias in the low bits.
  static constexpr float kMagic = 0x1.8p23f + 127, kLowest = -127, kHighest = 128, kSafe = 125;
  // The rest of 2^r after 1 on |r| ≤ 1/2, relative error 2^-23.4 (simd/minimax.py): decays of 1 are exact, and the share 1 − 2^x
  // that is forgotten has a relative error below 3 epsilon however small it is.
  static constexpr float kRest[] = {0.6931469764f, 0.2402224046f, 0.05550735025f, 0.009671618995f, 0.001326459276f};
};
template <>
struct Exp2<double> {
  static constexpr double kMagic = 0x1.8p52 + 1023, kLowest = -1023, kHighest = 1024, kSafe = 1021;
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
  const V magic = V::set(C::kMagic);
  V shifted = fma(s, a, magic);
  // This order of arguments keeps a NaN.
  if constexpr (!tame) shifted = min(V::set(C::kMagic + C::kHighest), max(V::set(C::kMagic + C::kLowest), shifted));
  V r = fma(s, a, magic - shifted);
  if constexpr (!tame) r = min(V::set(T(1)), max(V::set(T(-1)), r));
  const V p = fma(simd::internal::polynomial(r, C::kRest), r, V::set(T(1)));
  return p * low_bits_to_exponent(shifted);
}

/// Two vectors of channels at a time share what belongs to the state: b and c.
inline constexpr int kPair = 2;

/// Is every exponent of these channels in the safe range?
template <class T, Isa I>
ISOMER_INLINE bool is_tame(const S6Tokens<T>& x, const S6Block<T>& block, Index c) {
  using V = simd::Vec<T, I>;
  V top = V::zero();
  for (Index t = 0; t < x.count; ++t)
    for (int i = 0; i < kPair; ++i)
      top = max(top, abs(V::load(row<const T, I>(x.step, t, c + i * V::lanes), x.width - c - i * V::lanes)));
  // A NaN among the steps is kept or not by max: where it is lost, the tame arithmetic hands it on as well.
  return largest(top) * block.largest < Exp2<T>::kSafe;
}

template <class T, Isa I, bool tame>
void s6_forward_pair(const S6Tokens<T>& x, const S6Block<T>& block, T* state, const Rows<T>& o, Index c) noexcept {
  using V = simd::Vec<T, I>;
  const auto at = [&](int i) { return c + i * V::lanes; };
  const auto left = [&](int i) { return x.width - at(i); };
  for (Index t = 0; t < x.count; ++t) {
    V step[kPair], u[kPair], y[kPair];
#pragma GCC unroll 2
    for (int i = 0; i < kPair; ++i) {
      const V in = V::load(row<const T, I>(x.x, t, at(i)), left(i));
      step[i] = V::load(row<const T, I>(x.step, t, at(i)), left(i));
      u[i] = step[i] * in;
      y[i] = V::load(block.d + at(i)) * in;
    }
    const T *b = x.b.data + t * x.b.stride, *cs = x.c.data + t * x.c.stride;
#pragma GCC unroll 2
    for (Index n = 0; n < x.N; ++n) {
      const V bn = V::set(b[n]), cn = V::set(cs[n]);
#pragma GCC unroll 2
      for (int i = 0; i < kPair; ++i) {
        const Index place = n * kBlock + at(i);
        const V decay = exp2_product<tame>(step[i], V::load(block.a + place));
        const V h = fma(decay, V::load(state + place), u[i] * bn);
        h.store(state + place);
        y[i] = fma(cn, h, y[i]);
      }
    }
    if (o.data == nullptr) continue;
#pragma GCC unroll 2
    for (int i = 0; i < kPair; ++i) y[i].store(row<T, I>(o, t, at(i)), left(i));
  }
}

template <class T, Isa I>
void Kernels<T, I>::s6_forward(const S6Tokens<T>& x, const S6Block<T>& block, T* state, Rows<T> o) noexcept {
  for (Index c = 0; c < x.width; c += kPair * simd::Vec<T, I>::lanes) {
    if (is_tame<T, I>(x, block, c))
      s6_forward_pair<T, I, true>(x, block, state, o, c);
    else
      s6_forward_pair<T, I, false>(x, block, state, o, c);
  }
}

/// The decays of the chunk, and the states before each token and after the last.
template <class T, Isa I, bool tame>
void s6_recompute_pair(const S6Tokens<T>& x, const S6Block<T>& block, const S6Backward<T>& io, Index c) noexcept {
  using V = simd::Vec<T, I>;
  const auto at = [&](int i) { return c + i * V::lanes; };
  const auto left = [&](int i) { return x.width - at(i); };
  const Index size = x.N * kBlock;
  for (Index t = 0; t < x.count; ++t) {
    V step[kPair], u[kPair];
#pragma GCC unroll 2
    for (int i = 0; i < kPair; ++i) {
      step[i] = V::load(row<const T, I>(x.step, t, at(i)), left(i));
      u[i] = step[i] * V::load(row<const T, I>(x.x, t, at(i)), left(i));
    }
    const T* b = x.b.data + t * x.b.stride;
    const T* before = io.states + t * size;
    T *after = io.states + (t + 1) * size, *decays = io.decays + t * size;
#pragma GCC unroll 2
    for (Index n = 0; n < x.N; ++n) {
      const V bn = V::set(b[n]);
#pragma GCC unroll 2
      for (int i = 0; i < kPair; ++i) {
        const Index place = n * kBlock + at(i);
        const V decay = exp2_product<tame>(step[i], V::load(block.a + place));
        decay.store(decays + place);
        fma(decay, V::load(before + place), u[i] * bn).store(after + place);
      }
    }
  }
}

/// Token t, from the last to the first; y is the gradient of o.
template <class T, Isa I>
ISOMER_INLINE void s6_backward_token(const S6Tokens<T>& x, const S6Block<T>& block, const S6Backward<T>& io, Index c, Index t) {
  using V = simd::Vec<T, I>;
  const auto at = [&](int i) { return c + i * V::lanes; };
  const auto left = [&](int i) { return x.width - at(i); };
  const Index size = x.N * kBlock;
  V step[kPair], in[kPair], u[kPair], y[kPair], rate[kPair], from_b[kPair];
#pragma GCC unroll 2
  for (int i = 0; i < kPair; ++i) {
    in[i] = V::load(row<const T, I>(x.x, t, at(i)), left(i));
    step[i] = V::load(row<const T, I>(x.step, t, at(i)), left(i));
    u[i] = step[i] * in[i];
    y[i] = load_or_zero<T, I>(io.grad_o, t, at(i), left(i));
    rate[i] = from_b[i] = V::zero();
  }
  const T *b = x.b.data + t * x.b.stride, *cs = x.c.data + t * x.c.stride;
  const T *before = io.states + t * size, *after = before + size, *decays = io.decays + t * size;
  T *sums_b = io.sums_b + t * x.N * V::lanes, *sums_c = io.sums_c + t * x.N * V::lanes;
  for (Index n = 0; n < x.N; ++n) {
    const V bn = V::set(b[n]), cn = V::set(cs[n]);
    V sum_b = V::load(sums_b + n * V::lanes), sum_c = V::load(sums_c + n * V::lanes);
#pragma GCC unroll 2
    for (int i = 0; i < kPair; ++i) {
      const Index place = n * kBlock + at(i);
      const V decay = V::load(decays + place), g = fma(cn, y[i], V::load(io.back + place));
      const V pull = g * (decay * V::load(before + place));
      (g * decay).store(io.back + place);
      sum_b = fma(g, u[i], sum_b);
      sum_c = fma(y[i], V::load(after + place), sum_c);
      rate[i] = fma(pull, V::load(block.a + place), rate[i]);
      from_b[i] = fma(g, bn, from_b[i]);
      fma(pull, step[i], V::load(io.grad_a + place)).store(io.grad_a + place);
    }
    sum_b.store(sums_b + n * V::lanes);
    sum_c.store(sums_c + n * V::lanes);
  }
  // a was in units of log 2.
  const V unit = V::set(T(0.69314718055994530942));
#pragma GCC unroll 2
  for (int i = 0; i < kPair; ++i) {
    store_if<T, I>(fma(step[i], from_b[i], V::load(block.d + at(i)) * y[i]), io.grad_x, t, at(i), left(i));
    store_if<T, I>(fma(in[i], from_b[i], unit * rate[i]), io.grad_step, t, at(i), left(i));
    fma(y[i], in[i], V::load(io.grad_d + at(i))).store(io.grad_d + at(i));
  }
}

template <class T, Isa I>
void Kernels<T, I>::s6_backward(const S6Tokens<T>& x, const S6Block<T>& block, const T* before,
                                const S6Backward<T>& io) noexcept {
  using V = simd::Vec<T, I>;
  for (Index i = 0; i < x.N * kBlock; i += V::lanes) {
    V::load(before + i).store(io.states + i);
    V::zero().store(io.grad_a + i);
  }
  for (Index i = 0; i < kBlock; i += V::lanes) V::zero().store(io.grad_d + i);
  for (Index c = 0; c < x.width; c += kPair * V::lanes) {
    if (is_tame<T, I>(x, block, c))
      s6_recompute_pair<T, I, true>(x, block, io, c);
    else
      s6_recompute_pair<T, I, false>(x, block, io, c);
    for (Index t = x.count; t-- > 0;) s6_backward_token<T, I>(x, block, io, c, t);
  }
}

template <class T, Isa I>
void Kernels<T, I>::s6_sums(const T* sums, Index count, Index N, Rows<T> to) noexcept {
  using V = simd::Vec<T, I>;
  for (Index t = 0; t < count; ++t)
    for (Index n = 0; n < N; ++n) to.data[t * to.stride + n] = sum(V::load(sums + (t * N + n) * V::lanes));
}

template <class T, Isa I>
void Kernels<T, I>::s6_step(const S6Tokens<T>& x, const S6Step<T>& s, Rows<T> o) noexcept {
  using V = simd::Vec<T, I>;
  Rows<const T> from = s.from;
  for (Index t = 0; t < x.count; ++t) {
    const T *b = x.b.data + t * x.b.stride, *cs = x.c.data + t * x.c.stride;
    const T *in = x.x.data + t * x.x.stride, *step = x.step.data + t * x.step.stride;
    T* out = o.data + t * o.stride;
    for (Index c = 0; c < x.width; ++c) {
      const V u = V::set(step[c] * in[c]), rate = V::set(step[c] * T(1.4426950408889634074));
      const T *a = s.a.data + c * s.a.stride, *old = from.data == nullptr ? nullptr : from.data + c * from.stride;
      T* to = s.to.data + c * s.to.stride;
      V y = V::zero();
      chunk::each_vector<V>(x.N, [&](Index n, Index left) {
        const V decay = exp2_product<false>(rate, V::load(a + n, left));
        const V h = fma(decay, old == nullptr ? V::zero() : V::load(old + n, left), u * V::load(b + n, left));
        h.store(to + n, left);
        y = fma(V::load(cs + n, left), h, y);
      });
      out[c] = sum(y) + (s.d == nullptr ? T(0) : s.d[c] * in[c]);
    }
    from = {s.to.data, s.to.stride};
  }
}

}  // namespace isomer::scan_detail

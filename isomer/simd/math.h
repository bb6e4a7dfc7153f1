#pragma once
// Elementary functions of vectors, for kernels: exp, exp_nonpositive (and exp2_nonpositive in exp2.h), expm1, log, log1p,
// sigmoid, log_sigmoid, softplus, tanh, sin, cos, sincos. For whole arrays use simd/map.h. Include vec_<isa>.h first.
//
//   const V p = exp(s - row_max);     // V = Vec<float, I>
//
// Errors are within the ULP table of docs/numerics.md. NaN gives NaN; infinities and zeros give the limit. Numbers below the
// normal range count as 0 in the results of exp and what is built on it (sigmoid, softplus, log_sigmoid).
// Every function is a template over (T, Isa), so the code of one instruction set is never shared with another.
#include <limits>

#include "isomer/simd/math_constants.h"
#include "isomer/simd/vec.h"

namespace isomer::simd {

namespace internal {

/// c[0] + c[1] x + …
template <class T, Isa I, int n>
ISOMER_INLINE Vec<T, I> polynomial(Vec<T, I> x, const T (&c)[n]) {
  using V = Vec<T, I>;
  V p = V::set(c[n - 1]);
#pragma GCC unroll 16
  for (int k = n - 2; k >= 0; --k) p = fma(p, x, V::set(c[k]));
  return p;
}

/// x = n·ln2 + r with |r| ≤ ln2/2, and half = 2^(n−1); the smallest n gives half = 0. Half, because 2^n itself overflows
/// while e^x is still finite.
template <class T, Isa I>
struct ExpParts {
  Vec<T, I> r, half;
};
template <class T, Isa I>
ISOMER_INLINE ExpParts<T, I> reduce_exp(Vec<T, I> x) {
  using V = Vec<T, I>;
  using C = MathConstants<T>;
  // Adding 1.5·2^m rounds to an integer and leaves it in the low bits, where low_bits_to_exponent finds it.
  const V magic = V::set(C::kRound + C::kBiasLessOne);
  const V shifted = fma(x, V::set(C::kLog2e), magic), n = shifted - magic;
  return {fnma(n, V::set(C::kLn2Lo), fnma(n, V::set(C::kLn2Hi), x)), low_bits_to_exponent(shifted)};
}

/// e^r − 1 on the reduced interval.
template <class T, Isa I>
ISOMER_INLINE Vec<T, I> reduced_expm1(Vec<T, I> r) {
  return fma(r * r * Vec<T, I>::set(T(0.5)), polynomial(r, MathConstants<T>::kExp), r);
}

/// log(1 + f) for 1 + f in [√½, √2): 2 atanh(s) with s = f / (2 + f), arranged around f, which is exact.
template <class T, Isa I>
ISOMER_INLINE Vec<T, I> reduced_log1p(Vec<T, I> f) {
  using V = Vec<T, I>;
  const V s = f / (f + V::set(T(2))), z = s * s, twice = z + z;
  return fnma(s, fnma(twice, polynomial(z, MathConstants<T>::kAtanh), f), f);
}

/// log(1 + e) for e in [0, 1] (or NaN): with half of 1 + e beyond √2, so that one division is enough.
template <class T, Isa I>
ISOMER_INLINE Vec<T, I> log1p_unit(Vec<T, I> e) {
  using V = Vec<T, I>;
  using C = MathConstants<T>;
  const V half = V::set(T(0.5));
  const auto large = V::set(T(0.41421356237309504880)) < e;
  const V y = reduced_log1p(select(large, fma(e, half, -half), e));
  return select(large, y + V::set(C::kLn2Lo) + V::set(C::kLn2Hi), y);
}

}  // namespace internal

/// e^x for x ≤ 0 (or NaN); for larger x up to 1 too. Results below √2 times the smallest normal number are 0.
template <class T, Isa I>
ISOMER_INLINE Vec<T, I> exp_nonpositive(Vec<T, I> x) {
  using V = Vec<T, I>;
  const auto [r, half] = internal::reduce_exp(max(V::set(internal::MathConstants<T>::kExpLo), x));
  const V two = V::set(T(2));
  // 2 e^r = 2 + r (2 + r P(r)): half brings the factor 2 back.
  const V p = internal::polynomial(r, internal::MathConstants<T>::kExp);
  return fma(fma(p, r, two), r, two) * half;
}

/// e^x; 0 as above, +inf where it overflows.
template <class T, Isa I>
ISOMER_INLINE Vec<T, I> exp(Vec<T, I> x) {
  return exp_nonpositive(min(Vec<T, I>::set(internal::MathConstants<T>::kExpHi), x));
}

/// e^x − 1 without cancellation near 0.
template <class T, Isa I>
ISOMER_INLINE Vec<T, I> expm1(Vec<T, I> x) {
  using V = Vec<T, I>;
  using C = internal::MathConstants<T>;
  const auto [r, half] = internal::reduce_exp(min(V::set(C::kExpHi), max(V::set(C::kExpLo), x)));
  const V y = fma(half, internal::reduced_expm1(r), half - V::set(T(0.5)));
  return copysign(y + y, x);
}

/// Natural logarithm; −inf at 0, NaN below.
template <class T, Isa I>
ISOMER_INLINE Vec<T, I> log(Vec<T, I> x) {
  using V = Vec<T, I>;
  using C = internal::MathConstants<T>;
  constexpr T smallest = std::numeric_limits<T>::min(), infinity = std::numeric_limits<T>::infinity();
  constexpr T lift = T(1) / std::numeric_limits<T>::epsilon();
  constexpr T lift_exponent = T(std::numeric_limits<T>::digits - 1);
  const auto denormal = x < V::set(smallest);
  V e;
  const V m = split_exponent(select(denormal, x * V::set(lift), x), e);
  e = select(denormal, e - V::set(lift_exponent), e);
  const V y = internal::reduced_log1p(m - V::set(T(1)));
  V result = fma(e, V::set(C::kLn2Hi), fma(e, V::set(C::kLn2Lo), y));
  const V outside = select(x < V::zero(), V::set(std::numeric_limits<T>::quiet_NaN()), V::set(-infinity));
  result = select(V::zero() < x, result, outside);
  return select(x < V::set(infinity), result, x);
}

/// log(1 + x) without cancellation near 0.
template <class T, Isa I>
ISOMER_INLINE Vec<T, I> log1p(Vec<T, I> x) {
  using V = Vec<T, I>;
  const V one = V::set(T(1)), u = one + x, y = log(u);
  // What 1 + x lost, relative to u: the first-order correction is enough.
  const V corrected = y + (x - (u - one)) / u;
  const V limit = V::set(std::numeric_limits<T>::infinity());
  const V inner = select(u < limit, corrected, y);
  return copysign(select(V::zero() < u, inner, y), x);
}

/// 1 / (1 + e^−x).
template <class T, Isa I>
ISOMER_INLINE Vec<T, I> sigmoid(Vec<T, I> x) {
  const auto one = Vec<T, I>::set(T(1));
  return one / (one + exp(-x));
}

/// log sigmoid(x) = min(x, 0) − log1p(e^−|x|).
template <class T, Isa I>
ISOMER_INLINE Vec<T, I> log_sigmoid(Vec<T, I> x) {
  return min(Vec<T, I>::zero(), x) - internal::log1p_unit(exp_nonpositive(-abs(x)));
}

/// log(1 + e^x) = −log_sigmoid(−x).
template <class T, Isa I>
ISOMER_INLINE Vec<T, I> softplus(Vec<T, I> x) {
  return max(Vec<T, I>::zero(), x) + internal::log1p_unit(exp_nonpositive(-abs(x)));
}

template <class T, Isa I>
ISOMER_INLINE Vec<T, I> tanh(Vec<T, I> x) {
  using V = Vec<T, I>;
  // Beyond 20 the result is 1 in either type.
  const V e = expm1(V::set(T(2)) * min(V::set(T(20)), abs(x)));
  return copysign(e / (e + V::set(T(2))), x);
}

template <class T, Isa I>
struct SinCos {
  Vec<T, I> sin, cos;
};

/// Both at once. |x| ≤ 8192 (float) or 2^20 (double); NaN beyond: reduce larger angles in a wider type first.
template <class T, Isa I>
ISOMER_INLINE SinCos<T, I> sincos(Vec<T, I> x) {
  using V = Vec<T, I>;
  using C = internal::MathConstants<T>;
  const V one = V::set(T(1)), half = V::set(T(0.5));
  const V quarter = round_even(x * V::set(T(0.63661977236758134308)));  // of a turn: x = quarter·π/2 + r
  V r = x;
#pragma GCC unroll 4
  for (T part : C::kHalfPi) r = fnma(quarter, V::set(part), r);
  const V z = r * r;
  const V s = fma(r * z, internal::polynomial(z, C::kSin), r);
  const V c = fma(z * z, internal::polynomial(z, C::kCos), fnma(half, z, one));
  // The quarter modulo 4. Odd ones swap the two; sin is negative in 2 and 3, cos in 1 and 2.
  const V four = V::set(T(4)), q = fnma(four, round_even(fma(quarter, V::set(T(0.25)), V::set(T(-0.375)))), quarter);
  const auto odd = abs(abs(q - V::set(T(2))) - one) < half;
  const V a = select(odd, c, s), b = select(odd, s, c), nan = V::set(std::numeric_limits<T>::quiet_NaN());
  const V sine = select(q < V::set(T(1.5)), a, -a), cosine = select(abs(q - V::set(T(1.5))) < one, -b, b);
  const auto beyond = V::set(C::kTrigMax) < abs(x);
  return {select(beyond, nan, sine), select(beyond, nan, cosine)};
}

template <class T, Isa I>
ISOMER_INLINE Vec<T, I> sin(Vec<T, I> x) {
  return sincos(x).sin;
}

template <class T, Isa I>
ISOMER_INLINE Vec<T, I> cos(Vec<T, I> x) {
  return sincos(x).cos;
}

}  // namespace isomer::simd

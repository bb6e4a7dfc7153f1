#pragma once
// Elementary functions of vectors, for kernels: exp, exp_nonpositive, expm1, log, log1p, sigmoid, log_sigmoid, softplus, tanh,
// sin, cos, sincos. For whole arrays use simd/map.h. Include vec_<isa>.h first.
//
//   const V p = exp(s - row_max);     // V = Vec<float, I>
//
// Errors are within the ULP table of docs/numerics.md. NaN gives NaN; infinities and zeros give the limit. Numbers below the
// normal range count as 0 in the results of exp and what is built on it (sigmoid, softplus, log_sigmoid).
// Every function is a template over (T, Isa), so the code of one instruction set is never shared with another.
// The coefficients come from minimax.py. Scalar fma does not fuse, so products that must be exact use short constants.
#include <limits>

#include "isomer/simd/vec.h"

namespace isomer::simd {

namespace internal {

template <class T>
struct MathConstants;

template <>
struct MathConstants<float> {
  static constexpr float kLog2e = 1.44269504089f;
  // The first part is short: its product with an exponent is exact.
  static constexpr float kLn2Hi = 0x1.62e4p-1f, kLn2Lo = 0x1.7f7d1cp-20f;
  static constexpr float kRound = 0x1.8p23f;
  static constexpr float kBiasLessOne = 126.0f;
  // Between the limit where the result leaves the normal range and the end of the reduced interval that holds it.
  static constexpr float kExpLo = -87.4f, kExpHi = 88.9f;
  // Twice the rest of the series of e^r after 1 + r: see exp_nonpositive.
  static constexpr float kExp[] = {0.9999998683f, 0.3333304022f, 0.08333678811f, 0.01673756073f, 0.00276289537f};
  static constexpr float kAtanh[] = {0.3333338836f, 0.199887478f, 0.1493653649f};
  static constexpr float kHalfPi[] = {0x1.92p+0f, 0x1.fb4p-12f, 0x1.444p-24f, 0x1.68c234p-39f};
  static constexpr float kTrigMax = 8192.0f;
  static constexpr float kSin[] = {-0.1666665491f, 0.008332175845f, -0.0001951697741f};
  static constexpr float kCos[] = {0.04166664681f, -0.001388736449f, 2.443809133e-5f};
};

template <>
struct MathConstants<double> {
  static constexpr double kLog2e = 1.4426950408889634074;
  static constexpr double kLn2Hi = 0x1.62e42fefa2p-1, kLn2Lo = 0x1.9ef35793c7673p-41;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kBiasLessOne = 1022.0;
  static constexpr double kExpLo = -708.45, kExpHi = 709.9;
  static constexpr double kExp[] = {
      1.00000000000000214,    0.333333333333328205,     0.0833333333330583972,  0.0166666666669912145,  0.00277777778878396542,
      0.00039682539009583289, 0.0000496029855316505137, 5.51151746542546213e-6, 5.52607550492938939e-7, 4.99999353391149621e-8};
  static constexpr double kAtanh[] = {0.333333333333336745,  0.199999999997055457,  0.142857143716313682, 0.11111099237998626,
                                      0.0909178486920991287, 0.0765695165000291149, 0.0739875351443061794};
  static constexpr double kHalfPi[] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69, 0x1.b839a252049c1p-104};
  static constexpr double kTrigMax = 0x1p20;
  static constexpr double kSin[] = {-0.166666666666666319, 0.00833333333332236968,  -0.000198412698297709833,
                                    2.7557313678613933e-6, -2.50507559545120648e-8, 1.58966661578123865e-10};
  static constexpr double kCos[] = {0.0416666666666665992,   -0.00138888888888740649, 0.0000248015872894434818,
                                    -2.75573143406596124e-7, 2.08757216237580583e-9,  -1.13595593336798382e-11};
};

/// c[0] + c[1] x + …
template <class T, Isa I, int n>
[[gnu::always_inline]] inline Vec<T, I> polynomial(Vec<T, I> x, const T (&c)[n]) {
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
[[gnu::always_inline]] inline ExpParts<T, I> reduce_exp(Vec<T, I> x) {
  using V = Vec<T, I>;
  using C = MathConstants<T>;
  // Adding 1.5·2^m rounds to an integer and leaves it in the low bits, where low_bits_to_exponent finds it.
  const V magic = V::set(C::kRound + C::kBiasLessOne);
  const V shifted = fma(x, V::set(C::kLog2e), magic), n = shifted - magic;
  return {fnma(n, V::set(C::kLn2Lo), fnma(n, V::set(C::kLn2Hi), x)), low_bits_to_exponent(shifted)};
}

/// e^r − 1 on the reduced interval.
template <class T, Isa I>
[[gnu::always_inline]] inline Vec<T, I> reduced_expm1(Vec<T, I> r) {
  return fma(r * r * Vec<T, I>::set(T(0.5)), polynomial(r, MathConstants<T>::kExp), r);
}

/// log(1 + f) for 1 + f in [√½, √2): 2 atanh(s) with s = f / (2 + f), arranged around f, which is exact.
template <class T, Isa I>
[[gnu::always_inline]] inline Vec<T, I> reduced_log1p(Vec<T, I> f) {
  using V = Vec<T, I>;
  const V s = f / (f + V::set(T(2))), z = s * s, twice = z + z;
  return fnma(s, fnma(twice, polynomial(z, MathConstants<T>::kAtanh), f), f);
}

}  // namespace internal

/// e^x for x ≤ 0 (or NaN); for larger x up to 1 too. Results below √2 times the smallest normal number are 0.
template <class T, Isa I>
[[gnu::always_inline]] inline Vec<T, I> exp_nonpositive(Vec<T, I> x) {
  using V = Vec<T, I>;
  const auto [r, half] = internal::reduce_exp(max(V::set(internal::MathConstants<T>::kExpLo), x));
  const V two = V::set(T(2));
  // 2 e^r = 2 + r (2 + r P(r)): half brings the factor 2 back.
  const V p = internal::polynomial(r, internal::MathConstants<T>::kExp);
  return fma(fma(p, r, two), r, two) * half;
}

/// e^x; 0 as above, +inf where it overflows.
template <class T, Isa I>
[[gnu::always_inline]] inline Vec<T, I> exp(Vec<T, I> x) {
  return exp_nonpositive(min(Vec<T, I>::set(internal::MathConstants<T>::kExpHi), x));
}

/// e^x − 1 without cancellation near 0.
template <class T, Isa I>
[[gnu::always_inline]] inline Vec<T, I> expm1(Vec<T, I> x) {
  using V = Vec<T, I>;
  using C = internal::MathConstants<T>;
  const auto [r, half] = internal::reduce_exp(min(V::set(C::kExpHi), max(V::set(C::kExpLo), x)));
  const V y = fma(half, internal::reduced_expm1(r), half - V::set(T(0.5)));
  return copysign(y + y, x);
}

/// Natural logarithm; −inf at 0, NaN below.
template <class T, Isa I>
[[gnu::always_inline]] inline Vec<T, I> log(Vec<T, I> x) {
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
[[gnu::always_inline]] inline Vec<T, I> log1p(Vec<T, I> x) {
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
[[gnu::always_inline]] inline Vec<T, I> sigmoid(Vec<T, I> x) {
  const auto one = Vec<T, I>::set(T(1));
  return one / (one + exp(-x));
}

/// log sigmoid(x) = min(x, 0) − log1p(e^−|x|).
template <class T, Isa I>
[[gnu::always_inline]] inline Vec<T, I> log_sigmoid(Vec<T, I> x) {
  return min(Vec<T, I>::zero(), x) - log1p(exp_nonpositive(-abs(x)));
}

/// log(1 + e^x) = −log_sigmoid(−x).
template <class T, Isa I>
[[gnu::always_inline]] inline Vec<T, I> softplus(Vec<T, I> x) {
  return max(Vec<T, I>::zero(), x) + log1p(exp_nonpositive(-abs(x)));
}

template <class T, Isa I>
[[gnu::always_inline]] inline Vec<T, I> tanh(Vec<T, I> x) {
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
[[gnu::always_inline]] inline SinCos<T, I> sincos(Vec<T, I> x) {
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
[[gnu::always_inline]] inline Vec<T, I> sin(Vec<T, I> x) {
  return sincos(x).sin;
}

template <class T, Isa I>
[[gnu::always_inline]] inline Vec<T, I> cos(Vec<T, I> x) {
  return sincos(x).cos;
}

}  // namespace isomer::simd

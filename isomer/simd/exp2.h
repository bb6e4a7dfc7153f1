#pragma once
// 2^x for x ≤ 0: the exponential of softmax and of decays, once logits are kept in base 2. Part of the vector math (math.h) and
// apart from it because it is hot: no branch, no overflow check, a dozen operations.
#include "isomer/simd/vec.h"

namespace isomer::simd {

/// 2^x for x ≤ 0, relative error below 2 units in the last place; exactly 0 below the normal range and for −inf; NaN stays NaN.
/// x > 0 is accurate too as long as 2^x does not overflow.
template <class T, Isa I>
ISOMER_INLINE Vec<T, I> exp2_nonpositive(Vec<T, I> x) {
  using V = Vec<T, I>;
  // Chebyshev interpolation of 2^r on [-1/2, 1/2]: relative error 2.6e-9 (float) and 4.3e-18 (double).
  constexpr bool single = sizeof(T) == 4;
  constexpr T kLowest = single ? T(-127) : T(-1023);
  constexpr int kDegree = single ? 6 : 11;
  constexpr T kFloat[] = {T(1.0),
                          T(0.69314720670283259577),
                          T(0.24022650922288758071),
                          T(0.055503272266703020589),
                          T(0.0096180566785246380754),
                          T(0.001340042817761583794),
                          T(0.00015461444698569129083)};
  constexpr T kDouble[] = {T(1.0),
                           T(0.69314718055994530925),
                           T(0.24022650695910159567),
                           T(0.055504108664821627039),
                           T(0.0096181291075872566681),
                           T(0.0013333558146406470697),
                           T(0.00015403530463724354209),
                           T(0.000015252733841556772589),
                           T(1.3215432535912376166e-6),
                           T(1.0178057087733941105e-7),
                           T(7.0741942972885210056e-9),
                           T(4.455817908336064493e-10)};
  // At the lowest exponent pow2 is exactly 0. This order of arguments keeps a NaN.
  const V y = max(V::set(kLowest), x);
  const V n = round_even(y);
  const V r = y - n;
  const T* c = single ? kFloat : kDouble;
  V p = V::set(c[kDegree]);
#pragma GCC unroll 12
  for (int k = kDegree - 1; k >= 0; --k) p = fma(p, r, V::set(c[k]));
  return p * pow2(n);
}

}  // namespace isomer::simd

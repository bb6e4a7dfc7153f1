#pragma once
// The functions of unary.h and gated.h and their slopes, over Vec; include vec_<isa>.h first.
#include "isomer/simd/math.h"

namespace isomer::internal {

/// The options of a function.
template <class V>
struct Parameters {
  V a, b;
};

template <class V>
struct ValueSlope {
  V value, slope;
};

/// 1, 2, … as vectors.
template <class V, class T>
ISOMER_INLINE V number(T x) {
  using Element = decltype(sum(V::zero()));
  return V::set(Element(x));
}

/// The logistic function and what its slope is made of, from one exponential that does not overflow.
template <class V>
ISOMER_INLINE ValueSlope<V> logistic(V x) {
  const V one = number<V>(1), e = exp_nonpositive(-abs(x)), s = one / (one + e);
  return {select(x < V::zero(), e * s, s), e * s * s};
}

struct Identity {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    return {x, number<V>(1)};
  }
};
struct Affine {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>& p) {
    return {fma(p.a, x, p.b), p.a};
  }
};
struct Exp {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    const V e = exp(x);
    return {e, e};
  }
};
struct Log {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    return {log(x), number<V>(1) / x};
  }
};
struct Sigmoid {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    return logistic(x);
  }
};
struct LogSigmoid {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    return {log_sigmoid(x), logistic(-x).value};
  }
};
struct Silu {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    const auto s = logistic(x);
    return {x * s.value, fma(x, s.slope, s.value)};
  }
};
struct Tanh {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    return {tanh(x), number<V>(4) * logistic(x + x).slope};
  }
};
struct Softplus {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    return {softplus(x), logistic(x).value};
  }
};
struct Relu {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    return {max(V::zero(), x), select(V::zero() < x, number<V>(1), V::zero())};
  }
};
struct LeakyRelu {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>& p) {
    const V slope = select(V::zero() < x, number<V>(1), p.a);
    return {x * slope, slope};
  }
};
struct EluPlusOne {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    const V e = exp_nonpositive(min(V::zero(), x));
    return {max(V::zero(), x) + e, e};
  }
};
struct Gelu {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    // 2 √(2/π), and the same times 0.044715.
    const V c1 = number<V>(1.5957691216057307117597), c3 = number<V>(0.071354816272600248755);
    const auto s = logistic(x * fma(c3, x * x, c1));
    // Beyond 30 the slope of the logistic is 0; the limit keeps the cube from overflowing.
    const V near = max(number<V>(-30), min(number<V>(30), x));
    return {x * s.value, fma(near * fma(number<V>(3) * c3, near * near, c1), s.slope, s.value)};
  }
};
/// e^{z²} erfc(z) (z + 3) / 2 for 0 ≤ z ≤ 29 is a polynomial of (z − 3) / (z + 3), to half an epsilon of the type.
template <class T>
struct NormalTail;
template <>
struct NormalTail<float> {
  static constexpr float kTerms[] = {0.5370034584f,     -0.4416972006f,    0.2951138108f,     -0.1552342514f,
                                     0.05976833759f,    -0.01340905469f,   -0.0006255237805f, 0.001502080148f,
                                     -0.0002377732268f, -0.0001150917166f, 2.417784811e-5f};
};
template <>
struct NormalTail<double> {
  static constexpr double kTerms[] = {
      0.53700345354416985339,     -0.44169722658494188752,    0.29511417855205000871,     -0.15523363095027588729,
      0.059763880643703052751,    -0.013413617312483515544,   -0.00060620831503617862942, 0.0015170310040178436545,
      -0.00027415482791390372434, -0.00013838894864611492239, 0.000053780613694091622257, 0.000015199189002558622432,
      -8.734709182032150908e-6,   -2.3748593939263286993e-6,  1.3810901502008547693e-6,   4.9966380158267125109e-7,
      -2.0115035876031509845e-7,  -1.1646086764062881068e-7,  2.0004022661140923413e-8,   2.4298096852671362221e-8,
      1.2308667668325067037e-9,   -3.155369899091686026e-9,   -7.932257949609964926e-10};
};
struct GeluErf {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    using T = decltype(sum(V::zero()));
    // Beyond 40 the density is 0, and the distribution 0 or 1.
    const V near = max(number<V>(-40), min(number<V>(40), x)), three = number<V>(3);
    const V z = abs(near) * number<V>(0.70710678118654752440), density = exp_nonpositive(near * near * number<V>(-0.5));
    const V below = number<V>(1) / (z + three);
    const V tail = density * below * simd::internal::polynomial((z - three) * below, NormalTail<T>::kTerms);
    const V share = select(x < V::zero(), tail, number<V>(1) - tail);
    return {x * share, fma(near * number<V>(0.39894228040143267794), density, share)};
  }
};
struct Softcap {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>& p) {
    const auto t = Tanh::at(x / p.a, p);
    return {p.a * t.value, t.slope};
  }
};
struct OneMinusExp {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    return {-expm1(x), -exp(x)};
  }
};
struct SqrtOneMinusExp2 {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    // The slope of the root, 1 / (2 root), is at most 1000.
    const V root = sqrt(-expm1(x + x));
    return {root, number<V>(-2) * exp(x + x) / max(number<V>(1e-3), root + root)};
  }
};
struct Square {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    return {x * x, x + x};
  }
};
struct Sqrt {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    const V root = sqrt(x);
    return {root, number<V>(0.5) / root};
  }
};
struct Reciprocal {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    const V r = number<V>(1) / x;
    return {r, -r * r};
  }
};
struct Sin {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    const auto both = sincos(x);
    return {both.sin, both.cos};
  }
};
struct Cos {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>&) {
    const auto both = sincos(x);
    return {both.cos, -both.sin};
  }
};
struct MaxWith {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>& p) {
    return {max(p.a, x), select(p.a < x, number<V>(1), V::zero())};
  }
};
struct MinWith {
  template <class V>
  static ISOMER_INLINE ValueSlope<V> at(V x, const Parameters<V>& p) {
    return {min(p.a, x), select(x < p.a, number<V>(1), V::zero())};
  }
};

}  // namespace isomer::internal

#pragma once
// Vec with one lane: the fallback for machines without AVX2 and the check on the wide code.
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "isomer/simd/vec.h"

namespace isomer::simd {

template <class T>
struct Vec<T, Isa::scalar> {
  static constexpr Index lanes = 1;
  using Mask = bool;
  T v;

  using Signed = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  using Bits = std::make_unsigned_t<Signed>;
  static constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52, kBias = sizeof(T) == 4 ? 127 : 1023;
  static constexpr T kRootHalf = T(0.70710678118654752440);

  static Vec zero() { return {T(0)}; }
  static Vec set(T x) { return {x}; }
  static Vec load(const T* p) { return {*p}; }
  static Vec load(const T* p, Index n) { return {n > 0 ? *p : T(0)}; }
  void store(T* p) const { *p = v; }
  void store(T* p, Index n) const {
    if (n > 0) *p = v;
  }
  void stream(T* p) const { *p = v; }
  static void drain() {}
  static constexpr Index side = 1;
  static void transpose(const T* src, Index, T* dst, Index) { *dst = *src; }
  static void transpose_side(const T* src, Index, T* dst, Index) { *dst = *src; }
  static Vec sum_rows(const T* src, Index) { return {*src}; }

  friend Vec operator+(Vec a, Vec b) { return {a.v + b.v}; }
  friend Vec operator-(Vec a, Vec b) { return {a.v - b.v}; }
  friend Vec operator*(Vec a, Vec b) { return {a.v * b.v}; }
  friend Vec operator/(Vec a, Vec b) { return {a.v / b.v}; }
  friend Vec operator-(Vec a) { return {-a.v}; }
  friend Mask operator<(Vec a, Vec b) { return a.v < b.v; }
  friend Vec fma(Vec a, Vec b, Vec c) { return {a.v * b.v + c.v}; }
  friend Vec fnma(Vec a, Vec b, Vec c) { return {c.v - a.v * b.v}; }
  friend Vec min(Vec a, Vec b) { return {a.v < b.v ? a.v : b.v}; }
  friend Vec max(Vec a, Vec b) { return {a.v > b.v ? a.v : b.v}; }
  friend Vec abs(Vec a) { return {std::fabs(a.v)}; }
  friend Vec copysign(Vec size, Vec sign) { return {std::copysign(size.v, sign.v)}; }
  friend Vec sqrt(Vec a) { return {std::sqrt(a.v)}; }
  friend Vec round_even(Vec a) { return {std::nearbyint(a.v)}; }
  friend Vec pow2(Vec n) { return {std::bit_cast<T>(Bits(Bits(Signed(n.v)) + Bits(kBias)) << kMantissa)}; }
  friend Vec low_bits_to_exponent(Vec a) { return {std::bit_cast<T>(Bits(std::bit_cast<Bits>(a.v) << kMantissa))}; }
  friend Vec add_exponent(Vec a, Vec b) {
    return {std::bit_cast<T>(Bits(std::bit_cast<Bits>(a.v) + Bits(std::bit_cast<Bits>(b.v) << kMantissa)))};
  }
  friend Vec split_exponent(Vec a, Vec& exponent) {
    const Bits i = std::bit_cast<Bits>(a.v) + (std::bit_cast<Bits>(T(1)) - std::bit_cast<Bits>(kRootHalf));
    exponent.v = T(Signed(i >> kMantissa) - Signed(kBias));
    return {std::bit_cast<T>((i & ((Bits(1) << kMantissa) - 1)) + std::bit_cast<Bits>(kRootHalf))};
  }
  friend Vec select(Mask mask, Vec yes, Vec no) { return mask ? yes : no; }
  friend T sum(Vec a) { return a.v; }
  friend T largest(Vec a) { return a.v; }
};

}  // namespace isomer::simd

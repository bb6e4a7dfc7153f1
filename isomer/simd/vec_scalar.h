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

  static Vec zero() { return {T(0)}; }
  static Vec set(T x) { return {x}; }
  static Vec load(const T* p) { return {*p}; }
  static Vec load(const T* p, Index n) { return {n > 0 ? *p : T(0)}; }
  void store(T* p) const { *p = v; }
  void store(T* p, Index n) const {
    if (n > 0) *p = v;
  }
  static void transpose(const T* src, Index, T* dst, Index) { *dst = *src; }

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
  friend Vec abs(Vec a) { return {a.v < T(0) ? -a.v : a.v}; }
  friend Vec sqrt(Vec a) { return {std::sqrt(a.v)}; }
  friend Vec round_even(Vec a) { return {std::nearbyint(a.v)}; }
  friend Vec pow2(Vec n) {
    if constexpr (std::is_same_v<T, float>)
      return {std::bit_cast<float>((std::int32_t(n.v) + 127) << 23)};
    else
      return {std::bit_cast<double>((std::int64_t(n.v) + 1023) << 52)};
  }
  friend Vec select(Mask mask, Vec yes, Vec no) { return mask ? yes : no; }
  friend T sum(Vec a) { return a.v; }
  friend T largest(Vec a) { return a.v; }
};

}  // namespace isomer::simd

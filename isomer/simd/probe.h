#pragma once
// The operations of Vec seen from code that knows no instruction set, for the tests of Vec only.
#include "isomer/base/cpu.h"
#include "isomer/base/index.h"

namespace isomer::simd {

template <class T, Isa I>
struct Probe {
  static Index lanes() noexcept;
  static T sum(const T* a) noexcept;  // of `lanes` elements
  static T largest(const T* a) noexcept;
  /// out = one vector each of: a + b, a − b, a · b, a / b, −a, fma(a, b, c), fnma(a, b, c), min(a, b), max(a, b),
  /// copysign(a, b), select(a < b, a, c).
  static constexpr Index kResults = 11;
  static void combine(const T* a, const T* b, const T* c, T* out) noexcept;
  /// mantissa · 2^exponent = a.
  static void split(const T* a, T* mantissa, T* exponent) noexcept;
  /// out = mantissa · 2^exponent by an addition of exponents.
  static void join(const T* mantissa, const T* exponent, T* out) noexcept;
  static void stream(const T* a, T* out) noexcept;  // out aligned to 64 bytes
  static void sum_rows(const T* src, Index lds, T* out) noexcept;
  static void transpose(const T* src, Index lds, T* dst, Index ldd) noexcept;
  static Index transpose_side(const T* src, Index lds, T* dst, Index ldd) noexcept;  // returns the side
};

}  // namespace isomer::simd

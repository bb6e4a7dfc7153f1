#pragma once
// Probe for one instruction set; include vec_<isa>.h first.
#include "isomer/simd/probe.h"
#include "isomer/simd/vec.h"

namespace isomer::simd {

namespace internal {
// Inside Probe its own names hide those of Vec.
template <class V>
ISOMER_INLINE auto sum_of(V a) {
  return sum(a);
}
template <class V>
ISOMER_INLINE auto largest_of(V a) {
  return largest(a);
}
}  // namespace internal

template <class T, Isa I>
Index Probe<T, I>::lanes() noexcept {
  return Vec<T, I>::lanes;
}
template <class T, Isa I>
T Probe<T, I>::sum(const T* a) noexcept {
  return internal::sum_of(Vec<T, I>::load(a));
}
template <class T, Isa I>
T Probe<T, I>::largest(const T* a) noexcept {
  return internal::largest_of(Vec<T, I>::load(a));
}
template <class T, Isa I>
void Probe<T, I>::combine(const T* pa, const T* pb, const T* pc, T* out) noexcept {
  using V = Vec<T, I>;
  const V a = V::load(pa), b = V::load(pb), c = V::load(pc);
  const V results[kResults] = {
      a + b, a - b, a * b, a / b, -a, fma(a, b, c), fnma(a, b, c), min(a, b), max(a, b), copysign(a, b), select(a < b, a, c)};
  for (Index i = 0; i < kResults; ++i) results[i].store(out + i * V::lanes);
}
template <class T, Isa I>
void Probe<T, I>::split(const T* a, T* mantissa, T* exponent) noexcept {
  Vec<T, I> e = Vec<T, I>::zero();
  split_exponent(Vec<T, I>::load(a), e).store(mantissa);
  e.store(exponent);
}
template <class T, Isa I>
void Probe<T, I>::join(const T* mantissa, const T* exponent, T* out) noexcept {
  const auto shift = Vec<T, I>::set(sizeof(T) == 4 ? T(0x1.8p23) : T(0x1.8p52));
  add_exponent(Vec<T, I>::load(mantissa), Vec<T, I>::load(exponent) + shift).store(out);
}
template <class T, Isa I>
void Probe<T, I>::stream(const T* a, T* out) noexcept {
  Vec<T, I>::load(a).stream(out);
  Vec<T, I>::drain();
}
template <class T, Isa I>
void Probe<T, I>::sum_rows(const T* src, Index lds, T* out) noexcept {
  Vec<T, I>::sum_rows(src, lds).store(out);
}
template <class T, Isa I>
void Probe<T, I>::transpose(const T* src, Index lds, T* dst, Index ldd) noexcept {
  Vec<T, I>::transpose(src, lds, dst, ldd);
}
template <class T, Isa I>
Index Probe<T, I>::transpose_side(const T* src, Index lds, T* dst, Index ldd) noexcept {
  Vec<T, I>::transpose_side(src, lds, dst, ldd);
  return Vec<T, I>::side;
}

}  // namespace isomer::simd

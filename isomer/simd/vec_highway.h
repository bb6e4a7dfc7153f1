#pragma once
// Vec on the vectors of Highway: those of the one instruction set that a translation unit is compiled for (vec_avx2.h,
// vec_avx512.h).
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "isomer/simd/vec.h"

namespace isomer::simd {

namespace hn = hwy::HWY_NAMESPACE;

template <class T, Isa I>
struct Vec {
  static_assert(I != Isa::scalar, "vec_scalar.h has that one");
  using Tag = hn::ScalableTag<T>;
  using Raw = hn::Vec<Tag>;
  using Mask = hn::Mask<Tag>;
  using UTag = hn::RebindToUnsigned<Tag>;
  using Unsigned = hn::TFromD<UTag>;
  static constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52, kBias = sizeof(T) == 4 ? 127 : 1023;
  static constexpr Index lanes = hn::MaxLanes(Tag());
  Raw v;

  static HWY_INLINE Vec zero() { return {hn::Zero(Tag())}; }
  static HWY_INLINE Vec set(T x) { return {hn::Set(Tag(), x)}; }
  static HWY_INLINE Vec load(const T* p) { return {hn::LoadU(Tag(), p)}; }
  static HWY_INLINE Vec load(const T* p, Index n) { return n >= lanes ? load(p) : Vec{hn::MaskedLoad(first(n), Tag(), p)}; }
  HWY_INLINE void store(T* p) const { hn::StoreU(v, Tag(), p); }
  HWY_INLINE void store(T* p, Index n) const {
    if (n >= lanes)
      store(p);
    else
      hn::BlendedStore(v, first(n), Tag(), p);
  }
  HWY_INLINE void stream(T* p) const { hn::Stream(v, Tag(), p); }
  static HWY_INLINE void drain() { hwy::FlushStream(); }
  static constexpr Index side = 32 / sizeof(T);  // a row of 256 bits
  static HWY_INLINE void transpose(const T* src, Index lds, T* dst, Index ldd) {
    if constexpr (lanes == 16) {
      for (Index j = 0; j < lanes; j += 4) transpose_columns(src + j, lds, dst + j * ldd, ldd);
    } else {
      for (Index i = 0; i < lanes; i += side)
        for (Index j = 0; j < lanes; j += side) transpose_block(src + i * lds + j, lds, dst + j * ldd + i, ldd);
    }
  }
  static HWY_INLINE void transpose_side(const T* src, Index lds, T* dst, Index ldd) { transpose_block(src, lds, dst, ldd); }
  static HWY_INLINE Vec sum_rows(const T* src, Index lds) {
    if constexpr (lanes == side)
      return {sum_rows_of_block(src, lds)};
    else
      return {hn::Combine(Tag(), sum_rows_of_block(src + side * lds, lds), sum_rows_of_block(src, lds))};
  }

  friend HWY_INLINE Vec operator+(Vec a, Vec b) { return {hn::Add(a.v, b.v)}; }
  friend HWY_INLINE Vec operator-(Vec a, Vec b) { return {hn::Sub(a.v, b.v)}; }
  friend HWY_INLINE Vec operator*(Vec a, Vec b) { return {hn::Mul(a.v, b.v)}; }
  friend HWY_INLINE Vec operator/(Vec a, Vec b) { return {hn::Div(a.v, b.v)}; }
  friend HWY_INLINE Vec operator-(Vec a) { return {hn::Neg(a.v)}; }
  friend HWY_INLINE Mask operator<(Vec a, Vec b) { return hn::Lt(a.v, b.v); }
  friend HWY_INLINE Vec fma(Vec a, Vec b, Vec c) { return {hn::MulAdd(a.v, b.v, c.v)}; }
  friend HWY_INLINE Vec fnma(Vec a, Vec b, Vec c) { return {hn::NegMulAdd(a.v, b.v, c.v)}; }
  friend HWY_INLINE Vec min(Vec a, Vec b) { return {hn::Min(a.v, b.v)}; }
  friend HWY_INLINE Vec max(Vec a, Vec b) { return {hn::Max(a.v, b.v)}; }
  friend HWY_INLINE Vec abs(Vec a) { return {hn::Abs(a.v)}; }
  friend HWY_INLINE Vec copysign(Vec size, Vec sign) { return {hn::CopySign(size.v, sign.v)}; }
  friend HWY_INLINE Vec sqrt(Vec a) { return {hn::Sqrt(a.v)}; }
  friend HWY_INLINE Vec round_even(Vec a) { return {hn::Round(a.v)}; }
  friend HWY_INLINE Vec pow2(Vec n) {
    if constexpr (sizeof(T) == 4) {
      const hn::RebindToSigned<Tag> di;
      return {hn::BitCast(Tag(), hn::ShiftLeft<23>(hn::Add(hn::NearestInt(n.v), hn::Set(di, 127))))};
    } else {
      // Adding 1.5·2^52 leaves the integer in the low mantissa bits: AVX2 has no conversion of doubles to 64-bit integers.
      const hn::RebindToSigned<Tag> di;
      const auto low = hn::BitCast(di, hn::Add(n.v, hn::Set(Tag(), 0x1.8p52)));
      return {hn::BitCast(Tag(), hn::ShiftLeft<52>(hn::Add(low, hn::Set(di, 1023))))};
    }
  }
  friend HWY_INLINE Vec low_bits_to_exponent(Vec a) {
    return {hn::BitCast(Tag(), hn::ShiftLeft<kMantissa>(hn::BitCast(UTag(), a.v)))};
  }
  friend HWY_INLINE Vec add_exponent(Vec a, Vec b) {
    return {hn::BitCast(Tag(), hn::Add(hn::BitCast(UTag(), a.v), hn::ShiftLeft<kMantissa>(hn::BitCast(UTag(), b.v))))};
  }
  friend HWY_INLINE Vec split_exponent(Vec a, Vec& exponent) {
    const UTag du;
    const auto bits = [](T x) { return hn::BitCast(UTag(), hn::Set(Tag(), x)); };
    const auto root = bits(T(0.70710678118654752440));
    const auto i = hn::Add(hn::BitCast(du, a.v), hn::Sub(bits(T(1)), root));
    // Or-ing a small integer into the mantissa of 2^kMantissa converts it: AVX2 has no conversion of 64-bit integers.
    const T base = T(Unsigned(1) << kMantissa);
    exponent.v = hn::Sub(hn::BitCast(Tag(), hn::Or(hn::ShiftRight<kMantissa>(i), bits(base))), hn::Set(Tag(), base + T(kBias)));
    return {hn::BitCast(Tag(), hn::Add(hn::And(i, hn::Set(du, (Unsigned(1) << kMantissa) - 1)), root))};
  }
  friend HWY_INLINE Vec select(Mask mask, Vec yes, Vec no) { return {hn::IfThenElse(mask, yes.v, no.v)}; }
  friend HWY_INLINE T sum(Vec a) { return hn::GetLane(hn::SumOfLanes(Tag(), a.v)); }
  friend HWY_INLINE T largest(Vec a) { return hn::GetLane(hn::MaxOfLanes(Tag(), a.v)); }

 private:
  static HWY_INLINE Mask first(Index n) { return hn::FirstN(Tag(), std::size_t(n > 0 ? n : 0)); }

  using Part = hn::CappedTag<T, std::size_t(side)>;
  using Row = hn::Vec<Part>;
  static HWY_INLINE Row lower(Row a, Row b) {
    const hn::Repartition<double, Part> d64;
    return hn::BitCast(Part(), hn::InterleaveLower(d64, hn::BitCast(d64, a), hn::BitCast(d64, b)));
  }
  static HWY_INLINE Row upper(Row a, Row b) {
    const hn::Repartition<double, Part> d64;
    return hn::BitCast(Part(), hn::InterleaveUpper(d64, hn::BitCast(d64, a), hn::BitCast(d64, b)));
  }

  static HWY_INLINE void transpose_block(const T* src, Index lds, T* dst, Index ldd) {
    const Part d;
    Row r[side], s[side];
    for (int i = 0; i < side; ++i) r[i] = hn::LoadU(d, src + i * lds);
    for (int i = 0; i < side; i += 2) {
      s[i] = hn::InterleaveLower(d, r[i], r[i + 1]);
      s[i + 1] = hn::InterleaveUpper(d, r[i], r[i + 1]);
    }
    if constexpr (sizeof(T) == 4) {
      for (int i = 0; i < side; i += 4) {
        r[i] = lower(s[i], s[i + 2]);
        r[i + 1] = upper(s[i], s[i + 2]);
        r[i + 2] = lower(s[i + 1], s[i + 3]);
        r[i + 3] = upper(s[i + 1], s[i + 3]);
      }
    }
    const Row* rows = sizeof(T) == 4 ? r : s;
    constexpr int half = int(side) / 2;
    for (int i = 0; i < half; ++i) {
      hn::StoreU(hn::ConcatLowerLower(d, rows[i + half], rows[i]), d, dst + i * ldd);
      hn::StoreU(hn::ConcatUpperUpper(d, rows[i + half], rows[i]), d, dst + (i + half) * ldd);
    }
  }
  // Four columns of sixteen rows: loads bring rows i, i + 4, i + 8, i + 12 into the blocks of a vector, so that all that is left
  // to shuffle stays inside of blocks. One port shuffles vectors of 512 bits, and it is a port of the products, too.
  static HWY_INLINE void transpose_columns(const T* src, Index lds, T* dst, Index ldd) {
    const Tag d;
    const hn::Half<Tag> d2;
    const hn::Half<hn::Half<Tag>> d4;
    const hn::Repartition<double, Tag> d64;
    const auto rows = [&](Index i) {
      const auto block = [&](Index r) { return hn::LoadU(d4, src + (i + r) * lds); };
      return hn::Combine(d, hn::Combine(d2, block(12), block(8)), hn::Combine(d2, block(4), block(0)));
    };
    const auto pairs = [&](Raw a, Raw b, T* to) {
      const auto x = hn::BitCast(d64, a), y = hn::BitCast(d64, b);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, x, y)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, x, y)), d, to + ldd);
    };
    const Raw a = rows(0), b = rows(1), c = rows(2), e = rows(3);
    pairs(hn::InterleaveLower(d, a, b), hn::InterleaveLower(d, c, e), dst);
    pairs(hn::InterleaveUpper(d, a, b), hn::InterleaveUpper(d, c, e), dst + 2 * ldd);
  }
  // A transposition that adds up what it interleaves, of rows as long as a vector.
  static HWY_INLINE Row sum_rows_of_block(const T* src, Index lds) {
    const Part d;
    Row r[side];
    for (int i = 0; i < side; ++i) {
      r[i] = hn::LoadU(d, src + i * lds);
      for (Index j = side; j < lanes; j += side) r[i] = hn::Add(r[i], hn::LoadU(d, src + i * lds + j));
    }
    if constexpr (sizeof(T) == 4) {
      for (int i = 0; i < 4; ++i)
        r[i] = hn::Add(hn::InterleaveLower(d, r[2 * i], r[2 * i + 1]), hn::InterleaveUpper(d, r[2 * i], r[2 * i + 1]));
    }
    for (int i = 0; i < 2; ++i) r[i] = hn::Add(lower(r[2 * i], r[2 * i + 1]), upper(r[2 * i], r[2 * i + 1]));
    return hn::Add(hn::ConcatLowerLower(d, r[1], r[0]), hn::ConcatUpperUpper(d, r[1], r[0]));
  }
};

}  // namespace isomer::simd

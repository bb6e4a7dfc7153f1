// bfloat16 and half precision, as tensors are cast to and from them: every pattern of 16 bits one way, and the other way the
// numbers around every point where rounding changes.
#include "isomer/base/f16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "isomer/base/bf16.h"
#include "isomer/base/tensor.h"

namespace isomer {
namespace {

constexpr int kPatterns = 1 << 16;

/// What IEEE 754 says of a format of 16 bits.
struct Format {
  Type type;
  int mantissa;  // bits of it
  [[nodiscard]] int bias() const { return (1 << (14 - mantissa)) - 1; }
  [[nodiscard]] int infinity() const { return ((1 << (15 - mantissa)) - 1) << mantissa; }
  [[nodiscard]] double value(int pattern) const {
    const double sign = (pattern & 0x8000) != 0 ? -1 : 1;
    const int size = pattern & 0x7fff, exponent = size >> mantissa, fraction = size & ((1 << mantissa) - 1);
    if (size == infinity()) return sign * std::numeric_limits<double>::infinity();
    if (size > infinity()) return std::numeric_limits<double>::quiet_NaN();
    const int hidden = exponent == 0 ? 0 : 1 << mantissa;
    return sign * std::ldexp(fraction + hidden, std::max(exponent, 1) - bias() - mantissa);
  }
};
constexpr Format kFormats[] = {{Type::bf16, 7}, {Type::f16, 10}};

template <class T>
Tensor tensor_of(const std::vector<T>& numbers) {
  Tensor tensor(type_of<T>, {Index(numbers.size())});
  std::copy(numbers.begin(), numbers.end(), tensor.data<T>());
  return tensor;
}

Tensor all_patterns(Type type) {
  Tensor all(type, {kPatterns});
  for (int i = 0; i < kPatterns; ++i) reinterpret_cast<std::uint16_t*>(all.bytes())[i] = std::uint16_t(i);
  return all;
}

std::uint16_t pattern(const Tensor& tensor, Index i) { return reinterpret_cast<const std::uint16_t*>(tensor.bytes())[i]; }

TEST(SixteenBits, AreReadExactlyInEveryPattern) {
  for (const Format& format : kFormats) {
    const Tensor all = all_patterns(format.type), single = all.cast(Type::f32), wide = all.cast(Type::f64);
    for (int i = 0; i < kPatterns; ++i) {
      const double want = format.value(i);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(single.data<float>()[i]) && std::isnan(wide.data<double>()[i])) << i;
        continue;
      }
      ASSERT_EQ(double(single.data<float>()[i]), want) << name_of(format.type) << " " << i;
      ASSERT_EQ(wide.data<double>()[i], want) << name_of(format.type) << " " << i;
      ASSERT_EQ(std::signbit(single.data<float>()[i]), (i & 0x8000) != 0);
    }
  }
}

TEST(SixteenBits, ComeBackFromWiderTypes) {
  for (const Format& format : kFormats)
    for (const Type wider : {Type::f32, Type::f64}) {
      const Tensor back = all_patterns(format.type).cast(wider).cast(format.type);
      for (int i = 0; i < kPatterns; ++i) {
        if (std::isnan(format.value(i)))
          ASSERT_TRUE(std::isnan(format.value(pattern(back, i)))) << name_of(format.type) << " " << i;
        else
          ASSERT_EQ(pattern(back, i), i) << name_of(format.type);
      }
    }
}

/// Between every two neighbours, the largest and infinity included: just below the middle, the middle, just above it.
template <class T>
void expect_rounding(const Format& format) {
  std::vector<T> numbers;
  std::vector<int> want;
  const T inf = std::numeric_limits<T>::infinity();
  for (int sign : {0, 0x8000})
    for (int low = 0; low < format.infinity(); ++low) {
      // The step above the largest number is as wide as the one below it.
      const double below = format.value(low),
                   above = low + 1 < format.infinity() ? format.value(low + 1) : 2 * below - format.value(low - 1);
      const T middle = T((below + above) / 2), factor = sign == 0 ? T(1) : T(-1);
      ASSERT_EQ(double(middle), below + (above - below) / 2) << "the middle is exact";
      for (const T x : {std::nextafter(middle, T(0)), middle, std::nextafter(middle, inf)}) numbers.push_back(factor * x);
      for (const int p : {low, low % 2 == 0 ? low : low + 1, low + 1}) want.push_back(sign | p);
    }
  const Tensor rounded = tensor_of(numbers).cast(format.type);
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_EQ(pattern(rounded, Index(i)), want[i]) << name_of(format.type) << " of " << numbers[i];
}

TEST(SixteenBits, RoundToTheNearestAndThenToEven) {
  for (const Format& format : kFormats) {
    expect_rounding<float>(format);
    expect_rounding<double>(format);
  }
}

template <class T>
void expect_extremes(const Format& format) {
  using Limits = std::numeric_limits<T>;
  const Tensor x = tensor_of<T>({Limits::max(), Limits::lowest(), Limits::infinity(), -Limits::infinity(), T(0), -T(0),
                                 Limits::quiet_NaN(), Limits::signaling_NaN(), -Limits::quiet_NaN()})
                       .cast(format.type);
  const int inf = format.infinity();
  const int want[] = {inf, inf | 0x8000, inf, inf | 0x8000, 0, 0x8000};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(pattern(x, i), want[i]) << name_of(format.type) << " " << i;
  for (int i = 6; i < 9; ++i) EXPECT_TRUE(std::isnan(format.value(pattern(x, i)))) << name_of(format.type) << " " << i;
  if (format.mantissa == 10 || sizeof(T) == 8) {
    EXPECT_EQ(pattern(tensor_of<T>({Limits::denorm_min()}).cast(format.type), 0), 0);
  }
}

TEST(SixteenBits, KeepInfinitiesZerosAndNaN) {
  for (const Format& format : kFormats) {
    expect_extremes<float>(format);
    expect_extremes<double>(format);
  }
}

TEST(SixteenBits, AreCastIntoEachOther) {
  const Tensor halves = all_patterns(Type::f16), direct = halves.cast(Type::bf16),
               by_float = halves.cast(Type::f32).cast(Type::bf16);
  for (int i = 0; i < kPatterns; ++i) ASSERT_EQ(pattern(direct, i), pattern(by_float, i));
  EXPECT_EQ(pattern(tensor_of<Bf16>({to_bf16(1e9f)}).cast(Type::f16), 0), 0x7c00) << "bfloat16 goes further";
}

}  // namespace
}  // namespace isomer

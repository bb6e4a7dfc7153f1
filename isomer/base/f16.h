#pragma once
// IEEE half precision (binary16): 5 bits of exponent, 10 of mantissa. For storage only: arithmetic is done in float.
#include <bit>
#include <cstdint>

namespace isomer {

struct F16 {
  std::uint16_t bits;
};

/// The nearest, of two equally near the one with an even last bit; from 65520 on a number becomes inf, NaN stays NaN.
[[nodiscard]] inline F16 to_f16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000U, size = bits & 0x7fffffffU;
  if (size > 0x7f800000U) return {std::uint16_t(sign | 0x7e00U | (size >> 13 & 0x3ffU))};
  if (size >= 0x477ff000U) return {std::uint16_t(sign | 0x7c00U)};
  // Below 2^-14, where halves are multiples of 2^-24: so are the floats from a half on, and the sum is rounded to one.
  if (size < 0x38800000U) {
    const auto sum = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f);
    return {std::uint16_t(sign | (sum - 0x3f000000U))};
  }
  // Exponents differ by 112 in what is added to them.
  return {std::uint16_t(sign | ((size + 0xfffU + (size >> 13 & 1U) - 0x38000000U) >> 13))};
}

[[nodiscard]] inline float to_float(F16 x) {
  const std::uint32_t sign = std::uint32_t(x.bits & 0x8000U) << 16, size = x.bits & 0x7fffU;
  if (size >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | size << 13);
  if (size >= 0x400U) return std::bit_cast<float>(sign | ((size << 13) + 0x38000000U));
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(float(size) * 0x1p-24f));
}

}  // namespace isomer

#pragma once
// bfloat16: the upper half of a float, for numbers that are read far more often than they change. Arithmetic is done in float.
#include <bit>
#include <cstdint>

namespace isomer {

struct Bf16 {
  std::uint16_t bits;
};

/// The nearest, of two equally near the one with an even last bit; too large a number becomes inf, NaN stays NaN.
[[nodiscard]] inline Bf16 to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  // Rounding could carry a NaN over into infinity.
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {std::uint16_t(bits >> 16 | 0x40U)};
  return {std::uint16_t((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16)};
}

[[nodiscard]] inline float to_float(Bf16 x) { return std::bit_cast<float>(std::uint32_t(x.bits) << 16); }

}  // namespace isomer

#pragma once
// Random words and their use for one instruction set, as dropout.cc sees them.
#include <cstdint>

#include "isomer/base/cpu.h"
#include "isomer/base/index.h"

namespace isomer {

/// Philox blocks of four words that are computed side by side.
inline constexpr Index kPhiloxLanes = 8;

struct DropoutMask {
  std::uint64_t seed, stream;
  std::uint32_t threshold;  // words from here on keep their element
  double scale;
};

template <Isa I>
struct PhiloxKernels {
  /// 4 · kPhiloxLanes words, those of the blocks from `block` on.
  static void words(const DropoutMask& mask, std::uint64_t block, std::uint32_t* words) noexcept;
};

template <class T, Isa I>
struct DropoutKernels {
  /// y = or += x · scale where the word keeps it, else 0.
  static void apply(const DropoutMask& mask, Index count, const std::uint32_t* words, const T* x, bool add, T* y) noexcept;
};

}  // namespace isomer

#pragma once
// Sizes and the small integer arithmetic that every tiling needs.
#include <cstddef>

/// For small helpers that kernels use: never a symbol of its own, so the linker cannot pick one compiled for another Isa.
#define ISOMER_INLINE inline __attribute__((always_inline))

namespace isomer {

/// Every size, stride and position. Signed, so that differences are safe.
using Index = std::ptrdiff_t;

ISOMER_INLINE constexpr Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }
ISOMER_INLINE constexpr Index round_up(Index a, Index b) { return ceil_div(a, b) * b; }

}  // namespace isomer

#pragma once
// Sizes and the small integer arithmetic that every tiling needs.
#include <cstddef>

namespace isomer {

/// Every size, stride and position. Signed, so that differences are safe.
using Index = std::ptrdiff_t;

constexpr Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }
constexpr Index round_up(Index a, Index b) { return ceil_div(a, b) * b; }

}  // namespace isomer

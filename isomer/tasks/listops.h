#pragma once
// Expressions of the ListOps task as tokens: 0 is padding, 1 … 10 the digits, then [MIN, [MAX, [MED, [SM and ].
#include <cstdint>
#include <span>

#include "isomer/base/index.h"
#include "isomer/base/rng.h"

namespace isomer::listops {

struct Expression {
  Index length = 0;  // tokens; 0: it did not fit
  int value = 0;
};

struct Limits {
  int depth = 10, arguments = 10;
};

/// Writes a random expression: below the deepest level an operator with probability 1/4, with 2 … `arguments` children.
[[nodiscard]] Expression write_random(Rng& rng, const Limits& limits, std::span<std::int64_t> tokens);

}  // namespace isomer::listops

#pragma once
// Finite groups as multiplication tables, for word problems.
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/index.h"

namespace isomer {

struct Group {
  Index order = 1;
  std::vector<int> table{0};            // [order, order]: the product a·b; element 0 is the identity
  std::vector<std::string> names{"e"};  // of the elements: cycles of permutations, numbers of cyclic groups
  std::vector<int> moved{0};            // points that an element moves
  [[nodiscard]] int product(Index a, Index b) const { return table[std::size_t(a * order + b)]; }
};

/// "Z60", "S3", "A5", and products such as "A4xZ5"; permutations multiply from left to right (first a, then b). Throws Error for
/// other names and for more than 1024 elements.
[[nodiscard]] Group group_named(std::string_view name);

}  // namespace isomer

#pragma once
// How two lists of numbers go together.
//
//   spearman({1, 2, 3}, {10, 100, 1000})  // 1
#include <span>

namespace isomer {

/// The correlation of the numbers, from −1 to 1; 0 where one of the lists does not vary. The lists are of one length.
[[nodiscard]] double pearson(std::span<const double> a, std::span<const double> b);
/// The correlation of their ranks; equal numbers share theirs.
[[nodiscard]] double spearman(std::span<const double> a, std::span<const double> b);

}  // namespace isomer

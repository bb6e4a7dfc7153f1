#include "isomer/tasks/draw.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace isomer::draw {

void shuffle(Rng& rng, std::span<std::int64_t> items) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.below(i)]);
}

void distinct(Rng& rng, std::uint64_t n, std::span<std::int64_t> items) {
  // Floyd's algorithm gives every subset the same chance, but not every order.
  std::uint64_t top = n - items.size();
  for (std::size_t drawn = 0; drawn < items.size(); ++drawn, ++top) {
    const auto pick = std::int64_t(rng.below(top + 1));
    const auto end = items.begin() + std::ptrdiff_t(drawn);
    items[drawn] = std::find(items.begin(), end, pick) == end ? pick : std::int64_t(top);
  }
  shuffle(rng, items);
}

std::uint64_t permuted(std::uint64_t i, std::uint64_t n, std::uint64_t seed, std::uint64_t order) {
  const int half = int(std::bit_width(n - 1) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  constexpr std::uint32_t kRounds = 4;
  do {
    std::uint64_t left = i >> half, right = i & mask;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const auto words = philox({std::uint32_t(right), round, std::uint32_t(order), std::uint32_t(order >> 32)},
                                {std::uint32_t(seed), std::uint32_t(seed >> 32)});
      left = std::exchange(right, left ^ (words[0] & mask));
    }
    i = (left << half) | right;
  } while (i >= n);
  return i;
}

}  // namespace isomer::draw

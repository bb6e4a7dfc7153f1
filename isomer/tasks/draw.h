#pragma once
// Random choices that several generators make.
#include <cstdint>
#include <span>

#include "isomer/base/index.h"
#include "isomer/base/rng.h"

namespace isomer::draw {

/// One of from … to, both included.
[[nodiscard]] inline Index between(Rng& rng, Index from, Index to) {
  return from + Index(rng.below(std::uint64_t(to - from + 1)));
}

/// Puts the items into random order.
void shuffle(Rng& rng, std::span<std::int64_t> items);

/// Different numbers from 0 … n − 1 in random order; n ≥ items.size(). Fast for the few hundred that a sequence holds.
void distinct(Rng& rng, std::uint64_t n, std::span<std::int64_t> items);

/// The i-th of the numbers 0 … n − 1 in one of many orders, without a table: a Feistel network on the next power of four, walked
/// until it lands below n.
[[nodiscard]] std::uint64_t permuted(std::uint64_t i, std::uint64_t n, std::uint64_t seed, std::uint64_t order);

}  // namespace isomer::draw

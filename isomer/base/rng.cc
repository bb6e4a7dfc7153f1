#include "isomer/base/rng.h"

#include <cmath>
#include <numbers>

namespace isomer {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  // Multipliers and Weyl constants of the published generator.
  constexpr std::uint64_t kM0 = 0xD2511F53, kM1 = 0xCD9E8D57;
  constexpr std::uint32_t kW0 = 0x9E3779B9, kW1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kM0 * c[0], p1 = kM1 * c[2];
    c = {std::uint32_t(p1 >> 32) ^ c[1] ^ k[0], std::uint32_t(p1), std::uint32_t(p0 >> 32) ^ c[3] ^ k[1], std::uint32_t(p0)};
    k = {k[0] + kW0, k[1] + kW1};
  }
  return c;
}

std::uint32_t Rng::bits() {
  const std::uint64_t block = position_ / 4;
  if (block != cached_block_) {
    cache_ = philox({std::uint32_t(block), std::uint32_t(block >> 32), std::uint32_t(stream_), std::uint32_t(stream_ >> 32)},
                    {std::uint32_t(seed_), std::uint32_t(seed_ >> 32)});
    cached_block_ = block;
  }
  return cache_[position_++ % 4];
}

double Rng::uniform() {
  const std::uint64_t high = bits() >> 5, low = bits() >> 6;
  return double((high << 26) | low) * 0x1p-53;
}

std::uint64_t Rng::below(std::uint64_t n) {
  // Reject the incomplete last block of n, so that every value is equally likely.
  const std::uint64_t limit = ~std::uint64_t{0} - ~std::uint64_t{0} % n;
  for (;;) {
    const std::uint64_t high = bits(), x = (high << 32) | bits();
    if (x < limit) return x % n;
  }
}

double Rng::normal() {
  // 1 - u is in (0, 1], so the logarithm is finite.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace isomer

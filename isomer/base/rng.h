#pragma once
// Counter-based random numbers (Philox 4x32, 10 rounds: Salmon et al., SC 2011). The i-th number of a stream depends on
// (seed, stream, i) alone, so parallel and resumed work draws the same numbers as one straight run.
//
//   Rng rng(seed, stream);
//   double x = rng.normal();
#include <array>
#include <cstdint>

namespace isomer {

/// Four random words for one counter and key.
[[nodiscard]] std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

class Rng {
 public:
  explicit Rng(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  [[nodiscard]] std::uint32_t bits();
  /// In [0, 1), 53 random bits.
  [[nodiscard]] double uniform();
  /// In [0, n), without bias; n > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t n);
  /// Standard normal (Box-Muller, two uniforms each).
  [[nodiscard]] double normal();
  /// Numbers of 32 bits drawn so far; seek() goes there.
  [[nodiscard]] std::uint64_t position() const { return position_; }
  void seek(std::uint64_t position) { position_ = position; }

 private:
  std::uint64_t seed_, stream_, position_ = 0;
  std::uint64_t cached_block_ = ~std::uint64_t{0};
  std::array<std::uint32_t, 4> cache_{};
};

}  // namespace isomer

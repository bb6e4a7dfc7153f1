#pragma once
// The next token from logits: the largest, or a draw at a temperature among the k largest, or among the fewest that have a share
// p of the probability.
#include <cstdint>
#include <span>
#include <vector>

#include "isomer/base/index.h"
#include "isomer/base/rng.h"

namespace isomer {

struct SampleOptions {
  double temperature = 1;  // 0: always the largest
  Index top_k = 0;         // 0: all
  double top_p = 1;        // in (0, 1]: of those, as few of the likeliest as have this share; 1: all
};

class Sampler {
 public:
  /// Throws Error for options out of their ranges.
  Sampler(const SampleOptions& options, std::uint64_t seed);
  /// The i-th call depends on the seed, i and the logits alone.
  [[nodiscard]] std::int64_t operator()(std::span<const float> logits);
  [[nodiscard]] std::uint64_t drawn() const { return drawn_; }
  /// As if so many had been drawn.
  void skip_to(std::uint64_t drawn) { drawn_ = drawn; }

 private:
  /// The `count` largest in falling order, into kept_ and, with their tokens, the front of ranked_.
  [[nodiscard]] std::span<const float> largest(std::span<const float> logits, std::size_t count);
  /// Among the first so many weights, which have this sum.
  [[nodiscard]] std::size_t draw(std::size_t count, double total);

  SampleOptions options_;
  Rng rng_;
  std::uint64_t drawn_ = 0;
  std::vector<std::pair<float, std::int64_t>> ranked_;
  std::vector<float> kept_, weights_;
};

}  // namespace isomer

#pragma once
// The next token from logits: the largest, or a draw at a temperature among the k largest.
#include <cstdint>
#include <span>
#include <vector>

#include "isomer/base/index.h"
#include "isomer/base/rng.h"

namespace isomer {

struct SampleOptions {
  double temperature = 1;  // 0: always the largest
  Index top_k = 0;         // 0: all
};

class Sampler {
 public:
  /// Throws Error for a negative temperature or k.
  Sampler(const SampleOptions& options, std::uint64_t seed);
  [[nodiscard]] std::int64_t operator()(std::span<const float> logits);

 private:
  /// The top_k largest, into kept_ and, with their tokens, the front of ranked_.
  [[nodiscard]] std::span<const float> largest(std::span<const float> logits);

  SampleOptions options_;
  Rng rng_;
  std::vector<std::pair<float, std::int64_t>> ranked_;
  std::vector<float> kept_, weights_;
};

}  // namespace isomer

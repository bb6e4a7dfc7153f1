#include "isomer/train/sample.h"

#include <algorithm>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/models/prompt.h"

namespace isomer {

Sampler::Sampler(const SampleOptions& options, std::uint64_t seed) : options_(options), rng_(seed, 0x73616d706c65) {
  require(options.temperature >= 0 && std::isfinite(options.temperature), "generate",
          "expected a temperature of at least 0, got ", options.temperature);
  require(options.top_k >= 0, "generate", "expected top-k of at least 0, got ", options.top_k);
  require(options.top_p > 0 && options.top_p <= 1, "generate", "expected top-p above 0 and at most 1, got ", options.top_p);
}

std::span<const float> Sampler::largest(std::span<const float> logits, std::size_t count) {
  ranked_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) ranked_.emplace_back(logits[i], std::int64_t(i));
  // Equal logits keep the order of their tokens, so that a draw does not depend on the sorting.
  const auto larger = [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; };
  std::partial_sort(ranked_.begin(), ranked_.begin() + std::ptrdiff_t(count), ranked_.end(), larger);
  kept_.clear();
  for (std::size_t i = 0; i < count; ++i) kept_.push_back(ranked_[i].first);
  return kept_;
}

std::size_t Sampler::draw(std::size_t count, double total) {
  double at = rng_.uniform() * total;
  std::size_t drawn = 0;
  // Rounding may leave something over behind the last.
  while (drawn + 1 < count && (at -= weights_[drawn]) >= 0) ++drawn;
  return drawn;
}

std::int64_t Sampler::operator()(std::span<const float> logits) {
  // A draw takes two numbers of 32 bits.
  rng_.seek(2 * drawn_++);
  if (options_.temperature == 0) return likeliest(logits);
  const bool all = options_.top_k == 0 || std::size_t(options_.top_k) >= logits.size(), ranked = !all || options_.top_p < 1;
  if (ranked) logits = largest(logits, all ? logits.size() : std::size_t(options_.top_k));
  const float top = *std::max_element(logits.begin(), logits.end());
  weights_.resize(logits.size());
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    weights_[i] = std::exp(float(double(logits[i] - top) / options_.temperature));
    total += weights_[i];
  }
  std::size_t count = weights_.size();
  if (options_.top_p < 1) {
    double sum = weights_[0];
    for (count = 1; count < weights_.size() && sum < options_.top_p * total; ++count) sum += weights_[count];
    total = sum;
  }
  const std::size_t drawn = draw(count, total);
  return ranked ? ranked_[drawn].second : std::int64_t(drawn);
}

}  // namespace isomer

#include "isomer/train/sample.h"

#include <algorithm>
#include <cmath>

#include "isomer/base/error.h"

namespace isomer {

Sampler::Sampler(const SampleOptions& options, std::uint64_t seed) : options_(options), rng_(seed, 0x73616d706c65) {
  require(options.temperature >= 0 && std::isfinite(options.temperature), "generate",
          "expected a temperature of at least 0, got ", options.temperature);
  require(options.top_k >= 0, "generate", "expected top-k of at least 0, got ", options.top_k);
}

std::span<const float> Sampler::largest(std::span<const float> logits) {
  ranked_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) ranked_.emplace_back(logits[i], std::int64_t(i));
  // Equal logits keep the order of their tokens, so that a draw does not depend on the sorting.
  const auto larger = [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; };
  std::partial_sort(ranked_.begin(), ranked_.begin() + std::ptrdiff_t(options_.top_k), ranked_.end(), larger);
  kept_.clear();
  for (Index i = 0; i < options_.top_k; ++i) kept_.push_back(ranked_[std::size_t(i)].first);
  return kept_;
}

std::int64_t Sampler::operator()(std::span<const float> logits) {
  if (options_.temperature == 0) return std::max_element(logits.begin(), logits.end()) - logits.begin();
  const bool all = options_.top_k == 0 || std::size_t(options_.top_k) >= logits.size();
  if (!all) logits = largest(logits);
  const float top = *std::max_element(logits.begin(), logits.end());
  weights_.resize(logits.size());
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    weights_[i] = std::exp(float(double(logits[i] - top) / options_.temperature));
    total += weights_[i];
  }
  double at = rng_.uniform() * total;
  std::size_t drawn = 0;
  // Rounding may leave something over behind the last.
  while (drawn + 1 < weights_.size() && (at -= weights_[drawn]) >= 0) ++drawn;
  return all ? std::int64_t(drawn) : ranked_[drawn].second;
}

}  // namespace isomer

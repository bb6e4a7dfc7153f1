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

std::int64_t Sampler::operator()(std::span<const float> logits) {
  if (options_.temperature == 0) return std::max_element(logits.begin(), logits.end()) - logits.begin();
  ranked_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) ranked_.emplace_back(logits[i], std::int64_t(i));
  const std::size_t kept =
      options_.top_k > 0 ? std::min<std::size_t>(std::size_t(options_.top_k), ranked_.size()) : ranked_.size();
  // Equal logits keep the order of their tokens, so that a draw does not depend on the sorting.
  const auto larger = [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; };
  std::partial_sort(ranked_.begin(), ranked_.begin() + std::ptrdiff_t(kept), ranked_.end(), larger);
  double total = 0;
  const auto weight = [&](std::size_t i) { return std::exp(double(ranked_[i].first - ranked_[0].first) / options_.temperature); };
  for (std::size_t i = 0; i < kept; ++i) total += weight(i);
  double at = rng_.uniform() * total;
  for (std::size_t i = 0; i < kept; ++i)
    if ((at -= weight(i)) < 0) return ranked_[i].second;
  return ranked_[kept - 1].second;
}

}  // namespace isomer

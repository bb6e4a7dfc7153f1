#pragma once
// What a pass of a model reads.
#include <cstdint>
#include <span>

#include "isomer/models/config.h"

namespace isomer {

struct ModelInput {
  Index B = 0, T = 0;
  std::span<const std::int64_t> tokens = {};  // [B, T]
  std::span<const std::int64_t> labels = {};  // [B, T], or [B] where a sequence has one; negative ones do not count
  std::span<const float> inputs = {};         // [B, T, features]
  std::span<const float> targets = {};        // [B, outputs]
  std::span<const Index> lengths = {};        // [B], tokens before the padding, which nothing sees; empty: all
  std::span<const std::int64_t> types = {};   // [B, T], below config.types; empty: 0
  std::span<const float> known = {};          // table: [B, n], the labels of the first n rows
  // Language models: [n + 1], from 0 to T and never decreasing: n sequences packed into one row, which do not see each other.
  std::span<const std::int64_t> offsets = {};
};

/// What the mean of a loss is taken over: the labels that count, or the sequences of a regression.
[[nodiscard]] Index count_of(const ModelConfig& config, const ModelInput& in);
/// Sequences first … first + count − 1 of an input.
[[nodiscard]] ModelInput part_of(const ModelInput& in, Index first, Index count);

}  // namespace isomer

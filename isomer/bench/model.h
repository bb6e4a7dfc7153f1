#pragma once
// A model with random weights and tokens, as isomer bench --train and --worker time it: RMS norms, a GELU MLP of four widths,
// tied embeddings, and AdamW with clipping.
#include <cstdint>
#include <string>
#include <vector>

#include "isomer/models/model.h"
#include "isomer/nn/optimiser.h"

namespace isomer {

struct BenchModelSizes {
  Index layers = 4, width = 256, vocabulary = 8192;
};
/// Every layer is the preset.
[[nodiscard]] ModelConfig bench_config(const std::string& preset, const BenchModelSizes& sizes);

struct BenchModel {
  Parameters<float> parameters;
  Model<float> model;

  /// With matrices stored as nn/parameters.h says.
  explicit BenchModel(const ModelConfig& config, Type storage = Type::f32);
  virtual ~BenchModel() = default;
  BenchModel(const BenchModel&) = delete;
  BenchModel& operator=(const BenchModel&) = delete;
  [[nodiscard]] std::vector<std::int64_t> draw(Index count, std::uint64_t stream) const;
};

struct BenchTraining : BenchModel {
  Index B, T;
  std::vector<std::int64_t> tokens, labels;
  Optimiser<float> optimiser;
  Tape<float> tape;

  BenchTraining(const ModelConfig& config, Index batch, Index length, Context& context);
  /// As Session::step, whose batches are of tasks. The loss.
  double step();
  /// Of a step, in the laws; the backward pass counts twice.
  [[nodiscard]] double law_flops_per_token() const;
  /// Of a step: six for each trained number, and the laws.
  [[nodiscard]] double flops_per_token() const;
};

}  // namespace isomer

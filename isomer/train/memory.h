#pragma once
// The memory that training takes, by shapes alone: nothing of it is made.
#include "isomer/models/config.h"
#include "isomer/train/recipe.h"

namespace isomer {

/// In bytes. The sum is within a factor of kMemoryFactor of the peak of training from a few hundred MiB on; below, the program
/// itself and the scratch of kernels, some 100 MiB, are not small beside it.
struct MemoryEstimate {
  double parameters = 0;   // with their gradients
  double optimiser = 0;    // moments
  double activations = 0;  // what the forward pass keeps, and the gradients that are alive at a time
  [[nodiscard]] double total() const { return parameters + optimiser + activations; }
};
inline constexpr double kMemoryFactor = 2;

/// Of a step of train.batch sequences of T tokens.
[[nodiscard]] MemoryEstimate memory_of(const TrainRecipe& train, const ModelConfig& model, Index T);

}  // namespace isomer

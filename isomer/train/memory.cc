#include "isomer/train/memory.h"

#include <algorithm>

#include "isomer/models/cost.h"

namespace isomer {

MemoryEstimate memory_of(const TrainRecipe& train, const ModelConfig& model, Index T) {
  const ModelCost cost = cost_of(model, T);
  const double number = sizeof(float), width = double(model.width);
  const double layers = double(model.layers.size());
  const double tokens = double(train.batch) * double(T), at_once = double(ceil_div(train.batch, train.accumulate)) * double(T);
  const double kept = train.recompute ? layers * width + cost.layer_floats : cost.kept_floats;
  // Backward, those of a few values are alive: of what a layer adds to, of what it computes inside, and of its largest value.
  const double hidden = model.mlp == MlpKind::none ? width : double(hidden_size(mlp_options(model), model.width));
  const double gradients = 3 * width + 3 * hidden;
  // A batch has an input and a label for each token, of eight bytes each or as many floats.
  const double batch = 16 + number * double(model.features);
  return {.parameters = 2 * number * double(cost.parameters),
          .optimiser = (train.optimiser == "adamw" ? 2 : 1) * number * double(cost.parameters),
          .activations = at_once * number * (kept + gradients) + tokens * batch};
}

}  // namespace isomer

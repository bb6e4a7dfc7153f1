#pragma once
// What a model costs, without making it.
#include "isomer/models/config.h"

namespace isomer {

struct ModelCost {
  Index parameters = 0;        // trained numbers
  double flops_per_token = 0;  // forward, on average over a sequence of T tokens; a step of training takes three times as many
  double law_flops = 0;        // those of them that laws take
  Index state_floats = 0;      // what streaming keeps of a sequence after T tokens
  double kept_floats = 0;      // about what training keeps of a token for the backward pass
  double layer_floats = 0;     // of the layer that keeps most, which is what recomputation has at a time
};

[[nodiscard]] ModelCost cost_of(const ModelConfig& config, Index T);

}  // namespace isomer

#pragma once
// `isomer show --dsf`: laws as dynamical systems, those of a mixer as it starts and on random tokens, or of a trained model on a
// text.
#include <string>

#include "isomer/base/context.h"
#include "isomer/mixers/graph.h"

namespace isomer::cli {

struct DsfRequest {
  Index T = 16;
  bool json = false;
};
/// Throws Error for a mixer that is not causal.
void show_dsf(const graph::Graph& graph, const DsfRequest& request, Context& context);

struct ModelDsfRequest {
  std::string model, prompt;  // a folder, and what the model reads
  Index layer = 0;            // whose matrix is printed
  bool json = false;
};
/// Every layer and head. Throws Error for a model without tokens, and for layers that are not causal.
void show_model_dsf(const ModelDsfRequest& request, Context& context);

}  // namespace isomer::cli

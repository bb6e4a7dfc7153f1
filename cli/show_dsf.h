#pragma once
// `isomer show PRESET --dsf`: the laws of a mixer, as it starts and on random tokens, as dynamical systems.
#include "isomer/base/context.h"
#include "isomer/mixers/graph.h"

namespace isomer::cli {

struct DsfRequest {
  Index T = 16;
  bool json = false;
};
/// Throws Error for a mixer that is not causal.
void show_dsf(const graph::Graph& graph, const DsfRequest& request, Context& context);

}  // namespace isomer::cli

#pragma once
// A short name of everything that a saved state depends on.
#include <string>

#include "isomer/mixers/graph.h"

namespace isomer::graph {

/// "gla-4c1f09e2a7b35d60": the preset, and a hash of its width, its resolved options and the shapes of its nodes.
[[nodiscard]] std::string fingerprint(const Graph& graph);

}  // namespace isomer::graph

#pragma once
// A short name of everything that a saved state depends on.
#include <string>

#include "isomer/mixers/graph.h"

namespace isomer::graph {

/// The graph as text, a line for each resolved option and node, without how parameters start.
[[nodiscard]] std::string dump(const Graph& graph);

/// "gla-4c1f09e2a7b35d60": the preset, and a hash of its dump.
[[nodiscard]] std::string fingerprint(const Graph& graph);

}  // namespace isomer::graph

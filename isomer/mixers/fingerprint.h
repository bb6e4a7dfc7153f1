#pragma once
// A short name of everything that a saved state depends on.
#include <string>

#include "isomer/mixers/graph.h"

namespace isomer::graph {

/// The graph as text, a line for each option that is not at its default and each node, without how parameters start. Everything
/// stands in it by name: it does not depend on the order of enumerations or kinds in the code.
[[nodiscard]] std::string dump(const Graph& graph);

/// "gla-4c1f09e2a7b35d60": the preset, and a hash of its dump.
[[nodiscard]] std::string fingerprint(const Graph& graph);

}  // namespace isomer::graph

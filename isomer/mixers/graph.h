#pragma once
// A mixer as data: a small graph from the layer's input to its output. Presets build it (builder.h), nn runs it, and costs,
// equations, state sizes and fingerprints are read off it. A node's value is [B, T, heads, size]; one made of parameters alone is
// [1, 1, heads, size], the same for every token.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "isomer/mixers/graph_work.h"

namespace isomer::graph {

struct Node {
  std::string name = {};        // in equations; empty: it is written inside the node that uses it
  std::string parameters = {};  // how the names of its parameters start; nodes with one such name share them
  Work work;
  std::vector<int> inputs = {};
  Index heads = 1, size = 0;
};

/// A value that later layers of the preset may have.
struct Given {
  std::string name;
  int node;
};

/// Nodes in order of computation; the last is the output.
struct Graph {
  std::string preset;
  std::string law;  // the main one, for tables
  Index width = 0;
  std::vector<std::pair<std::string, std::string>> options;  // as resolved, in the order they were read
  Settings changed = {};                                     // those of them that are not at their defaults
  std::vector<Node> nodes;
  std::vector<Given> given = {};
};

/// The nodes that are values of another layer.
[[nodiscard]] std::vector<int> taken(const Graph& graph);
/// How a shared parameter is called in the model.
[[nodiscard]] std::string shared_name(const Graph& graph, const Node& node);
/// The sizes of a law node's call on B sequences of T tokens.
[[nodiscard]] LawSizes law_sizes(const Graph& graph, const Node& node, Index B, Index T);
/// The name of a kind of node, for fingerprints.
[[nodiscard]] std::string_view name_of(const Work& work);
/// Does the mixer need the whole sequence at once (bidirectional, global, images)?
[[nodiscard]] bool causal(const Graph& graph);
/// Do tokens of a row meet outside of laws: in convolutions, shifts, means, sums over tokens?
[[nodiscard]] bool meets_outside_laws(const Graph& graph);
/// Is a row of tokens an image, which cannot be shorter or stand beside others?
[[nodiscard]] bool reads_images(const Graph& graph);

}  // namespace isomer::graph

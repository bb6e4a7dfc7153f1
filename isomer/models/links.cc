#include "isomer/models/links.h"

#include <algorithm>

#include "isomer/base/error.h"

namespace isomer {

std::vector<Link> links_of(std::span<const graph::Graph* const> layers, std::size_t layer) {
  const graph::Graph& own = *layers[layer];
  const auto first = std::ranges::find(layers, own.preset, [](const graph::Graph* graph) { return graph->preset; });
  const graph::Graph& from = **first;
  std::vector<Link> links;
  for (const int i : graph::taken(own)) {
    const graph::Node& node = own.nodes[std::size_t(i)];
    const std::string& name = std::get<graph::FromFirst>(node.work).name;
    const auto given = std::ranges::find(from.given, name, &graph::Given::name);
    ISOMER_ASSERT(given != from.given.end(), "the first layer of a preset gives what the others take");
    const graph::Node& there = from.nodes[std::size_t(given->node)];
    require(there.heads == node.heads && there.size == node.size, "model", "expected ", name, " [", node.heads, ", ", node.size,
            "] of layer ", first - layers.begin(), " (", own.preset, ") for layer ", layer, ", got [", there.heads, ", ",
            there.size, "]");
    links.push_back({std::size_t(first - layers.begin()), std::size_t(given - from.given.begin())});
  }
  return links;
}

}  // namespace isomer

#pragma once
// Which layer gives what another takes (mixers/graph.h: Given, FromFirst): values that go from layer to layer beside x.
#include <span>
#include <vector>

#include "isomer/mixers/graph.h"

namespace isomer {

/// One of the values that a layer gives.
struct Link {
  std::size_t layer, value;
};

/// Where each value comes from that a layer takes, in the order of graph::taken(): from the first layer of its preset. Throws
/// Error when it is of another size there.
[[nodiscard]] std::vector<Link> links_of(std::span<const graph::Graph* const> layers, std::size_t layer);

}  // namespace isomer

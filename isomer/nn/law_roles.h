#pragma once
// The inputs of a law node by their roles.
#include <algorithm>
#include <string_view>

#include "isomer/base/error.h"
#include "isomer/mixers/graph.h"

namespace isomer {

struct LawRoles {
  const graph::Graph& graph;
  const graph::Node& node;
  const graph::Law& law;

  /// The place among the node's inputs, or −1.
  [[nodiscard]] int find(std::string_view role) const {
    const auto at = std::ranges::find(law.roles, role);
    return at == law.roles.end() ? -1 : int(at - law.roles.begin());
  }
  [[nodiscard]] bool has(std::string_view role) const { return find(role) >= 0; }
  [[nodiscard]] const graph::Node& operator[](std::string_view role) const {
    ISOMER_ASSERT(has(role), "a law has the inputs it needs");
    return graph.nodes[std::size_t(node.inputs[std::size_t(find(role))])];
  }
  /// The largest number of heads of q, k and v.
  [[nodiscard]] Index heads() const { return std::max({(*this)["q"].heads, (*this)["k"].heads, (*this)["v"].heads}); }
  /// delta: does every key channel decay by itself?
  [[nodiscard]] bool key_decay() const {
    if (!has("log_decay")) return false;
    const graph::Node& decay = (*this)["log_decay"];
    return has("a") || (decay.heads == heads() && decay.size == (*this)["k"].size && decay.size > 1);
  }
};

}  // namespace isomer

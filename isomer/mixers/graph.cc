#include "isomer/mixers/graph.h"

#include <algorithm>

namespace isomer::graph {

namespace {
template <class... F>
struct Overload : F... {
  using F::operator()...;
};
// Clang 14 asks for it.
template <class... F>
Overload(F...) -> Overload<F...>;
}  // namespace

std::vector<int> taken(const Graph& graph) {
  std::vector<int> all;
  for (int i = 0; i < int(graph.nodes.size()); ++i)
    if (std::holds_alternative<FromFirst>(graph.nodes[std::size_t(i)].work)) all.push_back(i);
  return all;
}

std::string shared_name(const Graph& graph, const Node& node) { return "shared." + graph.preset + "." + node.parameters; }

std::string_view name_of(const Law& law) {
  return std::visit(
      Overload{[](const AttentionOptions&) { return "attention"; }, [](const ScalarDecayOptions&) { return "scalar_decay"; },
               [](const ChannelDecayOptions&) { return "channel_decay"; }, [](const DeltaOptions&) { return "delta"; },
               [](const ScanOptions&) { return "scan"; }, [](const ScanS6Options&) { return "scan"; }},
      law.options);
}

bool causal(const Graph& graph) {
  const auto looks_ahead = [](const Node& node) {
    if (const auto* mean = std::get_if<Mean>(&node.work)) return !mean->causal;
    if (std::holds_alternative<LocalImageSum>(node.work)) return true;
    const auto* law = std::get_if<Law>(&node.work);
    if (law == nullptr) return false;
    if (const auto* a = std::get_if<AttentionOptions>(&law->options)) return a->direction != AttentionOptions::Direction::causal;
    const auto* s = std::get_if<ScalarDecayOptions>(&law->options);
    return s != nullptr && s->direction != ScalarDecayOptions::Direction::causal;
  };
  return std::none_of(graph.nodes.begin(), graph.nodes.end(), looks_ahead);
}

}  // namespace isomer::graph

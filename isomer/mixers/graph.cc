#include "isomer/mixers/graph.h"

#include <algorithm>
#include <array>

#include "isomer/base/error.h"
#include "isomer/laws/values.h"

namespace isomer::graph {

namespace {
// In the order of Work. Files hold these names: they stay as they are.
constexpr std::array<std::string_view, 32> kNames{
    "input",          "linear",         "head_linear", "parameter", "convolution",     "shift",      "map",
    "combine",        "gate",           "heads",       "repeat",    "normalise",       "rotary",     "rotate",
    "running_sum",    "mean",           "concat",      "slice",     "softmax",         "square_sum", "taylor_features",
    "position",       "position_table", "psi",         "local_sum", "local_image_sum", "detach",     "law",
    "share_of_heads", "from_first",     "gather",      "largest"};
static_assert(kNames.size() == std::variant_size_v<AnyWork>, "every kind of node has a name");
}  // namespace

Work::Work(const Work& other) = default;
Work::Work(Work&& other) noexcept = default;
Work& Work::operator=(const Work& other) = default;
Work& Work::operator=(Work&& other) noexcept = default;
Work::~Work() = default;

void Law::add(std::string_view role) {
  const int place = law->law().input(role);
  require(place >= 0, std::string(name()).c_str(), "unknown input ", role);
  roles.emplace_back(role);
  places.push_back(std::size_t(place));
  given.add(std::size_t(place));
}

int Law::find(std::string_view role) const {
  const auto at = std::find(roles.begin(), roles.end(), role);
  return at == roles.end() ? -1 : int(at - roles.begin());
}

std::string_view name_of(const Work& work) { return kNames[work.index()]; }

std::vector<int> taken(const Graph& graph) {
  std::vector<int> all;
  for (int i = 0; i < int(graph.nodes.size()); ++i)
    if (std::holds_alternative<FromFirst>(graph.nodes[std::size_t(i)].work)) all.push_back(i);
  return all;
}

std::string shared_name(const Graph& graph, const Node& node) { return "shared." + graph.preset + "." + node.parameters; }

LawSizes law_sizes(const Graph& graph, const Node& node, Index B, Index T) {
  const auto& law = std::get<Law>(node.work);
  ValueShapes shapes{};
  for (std::size_t i = 0; i < law.places.size(); ++i) {
    const Node& input = graph.nodes[std::size_t(node.inputs[i])];
    shapes[law.places[i]] = {B, T, input.heads, input.size};
  }
  return sizes_of(*law.law, law.given, shapes);
}

bool causal(const Graph& graph) {
  const auto looks_ahead = [](const Node& node) {
    if (const auto* mean = std::get_if<Mean>(&node.work)) return !mean->causal;
    if (const auto* largest = std::get_if<Largest>(&node.work)) return largest->over_tokens;
    if (std::holds_alternative<LocalImageSum>(node.work)) return true;
    const auto* law = std::get_if<Law>(&node.work);
    return law != nullptr && !law->law->causal();
  };
  return std::none_of(graph.nodes.begin(), graph.nodes.end(), looks_ahead);
}

bool meets_outside_laws(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    const Work& w = node.work;
    if (const auto* largest = std::get_if<Largest>(&w)) return largest->over_tokens;
    return std::holds_alternative<Convolution>(w) || std::holds_alternative<Shift>(w) || std::holds_alternative<RunningSum>(w) ||
           std::holds_alternative<Mean>(w) || std::holds_alternative<LocalSum>(w) || std::holds_alternative<LocalImageSum>(w);
  });
}

bool reads_images(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return std::holds_alternative<LocalImageSum>(node.work); });
}

}  // namespace isomer::graph

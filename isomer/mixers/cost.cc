#include "isomer/mixers/cost.h"

#include <algorithm>
#include <set>

#include "isomer/kernels/elementwise/functions.h"

namespace isomer {

using graph::Graph;
using graph::Node;

namespace {
// An exponential, a sine and the like, as in the costs of the laws.
constexpr double kFunction = 10;

const Node& input(const Graph& graph, const Node& node, std::size_t i) { return graph.nodes[std::size_t(node.inputs[i])]; }
double numbers(const Node& node) { return double(node.heads * node.size); }

/// A law node's call on one sequence.
struct LawAt {
  const graph::Law& law;
  LawSizes sizes;

  LawAt(const Graph& graph, const Node& node, Index T)
      : law(std::get<graph::Law>(node.work)), sizes(graph::law_sizes(graph, node, 1, T)) {}
  [[nodiscard]] const BoundLaw& bound() const { return *law.law; }
  /// Of one token.
  [[nodiscard]] double flops() const {
    const Form form = bound().plan(sizes, law.given, false).form;
    return bound().flops(sizes, law.given, LawPass::forward, form) / double(sizes.T);
  }
};

/// The flops of a node for one token.
struct Flops {
  const Graph& graph;
  const Node& node;
  Index T;

  double operator()(const graph::Linear& w) const {
    return numbers(node) * (2 * numbers(input(graph, node, 0)) + (w.bias ? 1 : 0));
  }
  double operator()(const graph::HeadLinear& w) const {
    return numbers(node) * (2 * double(input(graph, node, 0).size) + (w.bias ? 1 : 0));
  }
  double operator()(const graph::Convolution& w) const {
    return numbers(node) * (2 * double(w.width) + (w.silu ? kFunction : 0));
  }
  double operator()(const graph::Map& w) const { return info_of(w.function).flops * numbers(node); }
  double operator()(const graph::Combine&) const { return numbers(node); }
  double operator()(const graph::Gate& w) const { return (info_of(w.function).flops + 1) * numbers(node); }
  double operator()(const graph::Normalise&) const { return 5 * numbers(node); }
  double operator()(const graph::Rotary&) const { return (kFunction + 3) * numbers(node); }
  double operator()(const graph::Rotate&) const { return (kFunction + 3) * numbers(node); }
  double operator()(const graph::RunningSum&) const { return numbers(node); }
  double operator()(const graph::Mean&) const { return 2 * numbers(node); }
  double operator()(const graph::Softmax&) const { return (kFunction + 3) * numbers(node); }
  double operator()(const graph::SquareSum&) const { return 2 * numbers(input(graph, node, 0)); }
  double operator()(const graph::Largest&) const { return numbers(input(graph, node, 0)); }
  double operator()(const graph::TaylorFeatures&) const { return 2 * numbers(node); }
  double operator()(const graph::Psi& w) const {
    // Of every number: hidden units, once or for each function, and a sum over them for each function.
    const double hidden = double(w.hidden), L = double(w.outputs);
    return numbers(input(graph, node, 0)) * (3 * hidden * (w.shared ? 1 : L) + 2 * hidden * L);
  }
  double operator()(const graph::LocalSum& w) const { return 2 * double(w.width) * numbers(node); }
  double operator()(const graph::LocalImageSum&) const { return 18 * numbers(node); }
  double operator()(const graph::Law&) const { return LawAt(graph, node, T).flops(); }
  // Views, and numbers that are only fetched.
  double operator()(const auto&) const { return 0; }
};

void add_state(const Graph& graph, const Node& node, Cost& cost) {
  const Index own = node.heads * node.size;
  if (std::holds_alternative<graph::Law>(node.work)) {
    const LawAt at(graph, node, 1);
    const StateSize size = at.bound().state_size(at.sizes, at.law.given);
    cost.state_floats += size.fixed;
    cost.state_per_token += size.per_token;
  }
  if (const auto* w = std::get_if<graph::Convolution>(&node.work)) cost.state_floats += (w->width - 1) * own;
  if (const auto* w = std::get_if<graph::LocalSum>(&node.work)) cost.state_floats += (w->width - 1) * own;
  if (std::holds_alternative<graph::Shift>(node.work) || std::holds_alternative<graph::RunningSum>(node.work))
    cost.state_floats += own;
  if (const auto* w = std::get_if<graph::Mean>(&node.work)) cost.state_floats += w->causal ? own : 0;
}

/// Views and numbers of others take no memory.
bool makes_value(const Node& node) {
  return !std::holds_alternative<graph::Input>(node.work) && !std::holds_alternative<graph::Heads>(node.work) &&
         !std::holds_alternative<graph::Slice>(node.work) && !std::holds_alternative<graph::Detach>(node.work) &&
         !std::holds_alternative<graph::FromFirst>(node.work) && !std::holds_alternative<graph::PositionTable>(node.work);
}

bool trained(const Node& node) {
  if (const auto* w = std::get_if<graph::HeadLinear>(&node.work)) return w->training == graph::Training::trained;
  if (const auto* w = std::get_if<graph::Parameter>(&node.work)) return w->training == graph::Training::trained;
  return true;
}
}  // namespace

Index parameters_of(const Graph& graph, const Node& node) {
  const Index own = node.heads * node.size;
  if (const auto* w = std::get_if<graph::Linear>(&node.work))
    return own * (Index(numbers(input(graph, node, 0))) + (w->bias ? 1 : 0));
  if (const auto* w = std::get_if<graph::HeadLinear>(&node.work); w != nullptr && !w->given)
    return (w->shared ? node.size : own) * (input(graph, node, 0).size + (w->bias ? 1 : 0));
  if (std::holds_alternative<graph::Parameter>(node.work)) return own;
  if (const auto* w = std::get_if<graph::Convolution>(&node.work)) return own * (w->width + (w->bias ? 1 : 0));
  if (const auto* w = std::get_if<graph::Normalise>(&node.work))
    return (w->shared ? node.size : own) * ((w->weight ? 1 : 0) + (w->bias ? 1 : 0));
  if (const auto* w = std::get_if<graph::PositionTable>(&node.work)) return w->length * own;
  if (const auto* w = std::get_if<graph::Psi>(&node.work))
    return w->shared ? 2 * w->hidden + w->outputs * (w->hidden + 1) : w->outputs * (3 * w->hidden + 1);
  return 0;
}

Cost cost_of(const Graph& graph, Index T) {
  Cost cost;
  std::set<std::string> counted;
  std::vector<bool> fixed(graph.nodes.size(), false);  // the same for every token: computed once
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const Index own = parameters_of(graph, node);
    if (own > 0 && trained(node) && counted.insert(node.parameters).second) cost.parameters += own;
    add_state(graph, node, cost);
    fixed[i] = std::holds_alternative<graph::Parameter>(node.work) ||
               (!node.inputs.empty() &&
                std::all_of(node.inputs.begin(), node.inputs.end(), [&](int from) { return fixed[std::size_t(from)]; }));
    if (fixed[i]) continue;
    const double flops = std::visit(Flops{graph, node, T}, node.work);
    cost.flops_per_token += flops;
    if (makes_value(node)) cost.kept_floats += numbers(node);
    if (!std::holds_alternative<graph::Law>(node.work)) continue;
    cost.law_flops += flops;
    const LawAt at(graph, node, T);
    cost.kept_floats += at.bound().taped_floats(at.sizes, at.law.given);
  }
  return cost;
}

StateDimension state_dimension(const Graph& graph) {
  const auto main = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                 [](const Node& n) { return std::holds_alternative<graph::Law>(n.work); });
  if (main == graph.nodes.end()) return {};
  const LawAt at(graph, *main, 1);
  return at.bound().state_dimension(at.sizes, at.law.given);
}

Choice plan_of(const Graph& graph, const Node& node, Index T, bool taped) {
  const LawAt at(graph, node, T);
  return at.bound().plan(at.sizes, at.law.given, taped);
}

}  // namespace isomer

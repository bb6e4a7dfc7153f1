#include "isomer/mixers/cost.h"

#include <algorithm>
#include <set>

namespace isomer {

using graph::Graph;
using graph::Node;

namespace {
// An exponential, a sine and the like, as in the costs of the laws.
constexpr double kFunction = 10;

const Node& input(const Graph& graph, const Node& node, std::size_t i) { return graph.nodes[std::size_t(node.inputs[i])]; }
double numbers(const Node& node) { return double(node.heads * node.size); }

/// The node that a law has in this role, or null.
const Node* role(const Graph& graph, const Node& node, std::string_view name) {
  const auto& roles = std::get<graph::Law>(node.work).roles;
  const auto at = std::find(roles.begin(), roles.end(), name);
  return at == roles.end() ? nullptr : &input(graph, node, std::size_t(at - roles.begin()));
}

bool low_rank(const graph::Law& law) { return std::find(law.roles.begin(), law.roles.end(), "a") != law.roles.end(); }

/// Keys that a token sees, on average over T.
double visible(const AttentionOptions& o, Index T) {
  const bool causal = o.direction == AttentionOptions::Direction::causal;
  double pairs = 0;
  for (Index t = 0; t < T; ++t) {
    const Index first = o.window > 0 ? std::max<Index>(0, t - o.window + 1) : 0;
    const Index last = causal ? t : o.window > 0 ? std::min(T - 1, t + o.window - 1) : T - 1;
    pairs += double(last - first + 1 + std::min(o.sinks, first));
  }
  return pairs / double(T);
}

/// The flops of a law for one token.
struct LawFlops {
  const Graph& graph;
  const Node& node;
  Index T;

  double operator()(const AttentionOptions& o) const { return H() * visible(o, T) * 2 * (K() + V()); }
  double operator()(const ScalarDecayOptions& o) const {
    if (o.direction == ScalarDecayOptions::Direction::global) return H() * 4 * K() * V();
    return H() * by_form(5 * K() * V(), K() + V(), 4 * K() * V());
  }
  double operator()(const ChannelDecayOptions&) const {
    return H() * by_form(5 * K() * V(), K() + V(), 4 * K() * V() + 60 * K());
  }
  double operator()(const DeltaOptions&) const {
    const bool low = low_rank(std::get<graph::Law>(node.work));
    return H() * by_form(7 * K() * V(), (low ? 4 : 2) * (K() + V()), (low ? 8 : 6) * K() * V());
  }
  double operator()(const ScanOptions&) const {
    const double N = numbers(*role(graph, node, "x"));
    return N * (numbers(node) > N ? 40 : 12);
  }
  double operator()(const graph::ScanS6Options&) const { return 15 * numbers(*role(graph, node, "a")); }

 private:
  [[nodiscard]] double H() const { return double(node.heads); }
  [[nodiscard]] double K() const { return double(role(graph, node, "k")->size); }
  [[nodiscard]] double V() const { return double(role(graph, node, "v")->size); }
  /// pair: for every token of a chunk that holds all; state: for the token itself.
  [[nodiscard]] double by_form(double step, double pair, double state) const {
    const Choice choice = find_law(graph::name_of(std::get<graph::Law>(node.work))).choose(law_case(graph, node, T));
    if (choice.form == Form::step) return step;
    if (choice.form == Form::parallel) return double(T) * pair;
    return state;
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
  double operator()(const graph::Map& w) const {
    switch (w.function) {
      case Unary::identity: return 0;
      case Unary::affine: return 2 * numbers(node);
      case Unary::relu:
      case Unary::leaky_relu:
      case Unary::square:
      case Unary::sqrt:
      case Unary::reciprocal:
      case Unary::max_with:
      case Unary::min_with: return numbers(node);
      default: return kFunction * numbers(node);
    }
  }
  double operator()(const graph::Combine&) const { return numbers(node); }
  double operator()(const graph::Gate&) const { return (kFunction + 1) * numbers(node); }
  double operator()(const graph::Normalise&) const { return 5 * numbers(node); }
  double operator()(const graph::Rotary&) const { return (kFunction + 3) * numbers(node); }
  double operator()(const graph::Rotate&) const { return (kFunction + 3) * numbers(node); }
  double operator()(const graph::RunningSum&) const { return numbers(node); }
  double operator()(const graph::Mean&) const { return 2 * numbers(node); }
  double operator()(const graph::Softmax&) const { return (kFunction + 3) * numbers(node); }
  double operator()(const graph::SquareSum&) const { return 2 * numbers(input(graph, node, 0)); }
  double operator()(const graph::TaylorFeatures&) const { return 2 * numbers(node); }
  double operator()(const graph::Psi& w) const {
    // Of every number: hidden units, once or for each function, and a sum over them for each function.
    const double hidden = double(w.hidden), L = double(w.outputs);
    return numbers(input(graph, node, 0)) * (3 * hidden * (w.shared ? 1 : L) + 2 * hidden * L);
  }
  double operator()(const graph::LocalSum& w) const { return 2 * double(w.width) * numbers(node); }
  double operator()(const graph::LocalImageSum&) const { return 18 * numbers(node); }
  double operator()(const graph::Law& law) const { return std::visit(LawFlops{graph, node, T}, law.options); }
  // Views, and numbers that are only fetched.
  double operator()(const auto&) const { return 0; }
};

struct StateOfLaw {
  const Graph& graph;
  const Node& node;
  Cost& cost;

  void operator()(const AttentionOptions& o) const {
    const Node &k = *role(graph, node, "k"), &v = *role(graph, node, "v");
    const Index each = k.heads * k.size + v.heads * v.size + (role(graph, node, "log_forget") != nullptr ? node.heads : 0);
    if (o.window > 0)
      cost.state_floats += (o.window + o.sinks) * each;
    else
      cost.state_per_token += each;
  }
  void operator()(const ScalarDecayOptions& o) const {
    using enum ScalarDecayOptions::Normaliser;
    const Index K = role(graph, node, "k")->size, V = role(graph, node, "v")->size;
    const Index more = o.normaliser == none ? 0 : o.normaliser == sum ? K : o.normaliser == max ? K + 1 : K + V;
    cost.state_floats += node.heads * (K * V + more) + (o.normaliser == subtract ? 1 : 0);
  }
  void operator()(const ScanOptions&) const { cost.state_floats += node.heads * node.size; }
  void operator()(const graph::ScanS6Options&) const { cost.state_floats += Index(numbers(*role(graph, node, "a"))); }
  // channel_decay and delta.
  void operator()(const auto&) const {
    cost.state_floats += node.heads * role(graph, node, "k")->size * role(graph, node, "v")->size;
  }
};

void add_state(const Graph& graph, const Node& node, Cost& cost) {
  const Index own = node.heads * node.size;
  if (const auto* law = std::get_if<graph::Law>(&node.work)) std::visit(StateOfLaw{graph, node, cost}, law->options);
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

/// What a law leaves for its backward pass: a state for every chunk, or a few numbers of every token.
double law_tape(const Graph& graph, const Node& node, Index T) {
  const auto& law = std::get<graph::Law>(node.work);
  if (std::holds_alternative<AttentionOptions>(law.options)) return numbers(node) + double(node.heads);
  Cost state;
  std::visit(StateOfLaw{graph, node, state}, law.options);
  BenchCase backward = law_case(graph, node, T);
  backward.direction = "forward+backward";
  const Choice choice = find_law(graph::name_of(law)).choose(backward);
  return double(state.state_floats) / double(choice.chunk > 0 ? std::min(choice.chunk, T) : T);
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
    cost.kept_floats += law_tape(graph, node, T);
  }
  return cost;
}

StateDimension state_dimension(const Graph& graph) {
  const auto main = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                 [](const Node& n) { return std::holds_alternative<graph::Law>(n.work); });
  if (main == graph.nodes.end()) return {};
  const auto& law = std::get<graph::Law>(main->work);
  if (std::holds_alternative<ScanOptions>(law.options)) return {1, Index(numbers(*role(graph, *main, "x")))};
  if (std::holds_alternative<graph::ScanS6Options>(law.options))
    return {role(graph, *main, "a")->size, role(graph, *main, "a")->heads};
  const Index channels = main->heads * main->size;
  if (const auto* o = std::get_if<AttentionOptions>(&law.options)) {
    if (o->window > 0) return {o->window + o->sinks, channels};
    return {1, channels, true};
  }
  // One more feature holds the sum of values (InLine), or the last value until it is written (read before: RWKV-6).
  const auto* decay = std::get_if<ScalarDecayOptions>(&law.options);
  const auto* read = std::get_if<ChannelDecayOptions>(&law.options);
  const bool more = (decay != nullptr && decay->normaliser == ScalarDecayOptions::Normaliser::subtract) ||
                    (read != nullptr && read->read == ChannelDecayOptions::Read::before);
  return {role(graph, *main, "k")->size + (more ? 1 : 0), channels};
}

BenchCase law_case(const Graph& graph, const Node& node, Index T) {
  const auto& law = std::get<graph::Law>(node.work);
  BenchCase what{.subject = std::string(graph::name_of(law)), .variant = "", .form = Form::automatic, .T = T};
  if (std::holds_alternative<graph::ScanS6Options>(law.options)) {
    const Node& a = *role(graph, node, "a");
    what.variant = "s6", what.H = 1, what.K = a.heads, what.V = a.size;
    return what;
  }
  if (std::holds_alternative<ScanOptions>(law.options)) {
    const Node& x = *role(graph, node, "x");
    what.variant = role(graph, node, "angle") != nullptr ? "complex" : "real", what.H = 1, what.K = x.heads * x.size, what.V = 1;
    return what;
  }
  what.H = node.heads, what.K = role(graph, node, "k")->size, what.V = role(graph, node, "v")->size;
  if (const auto* o = std::get_if<AttentionOptions>(&law.options))
    what.variant = o->window > 0 ? "window" : "causal", what.window = o->window;
  if (const auto* o = std::get_if<ScalarDecayOptions>(&law.options))
    what.variant = o->direction == ScalarDecayOptions::Direction::global ? "global" : "linear";
  if (const auto* o = std::get_if<ChannelDecayOptions>(&law.options))
    what.variant = o->read == ChannelDecayOptions::Read::before ? "rwkv6" : "gla";
  if (std::holds_alternative<DeltaOptions>(law.options)) what.variant = low_rank(law) ? "rwkv7" : "gated";
  return what;
}

}  // namespace isomer

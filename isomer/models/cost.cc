#include "isomer/models/cost.h"

#include <algorithm>
#include <set>

#include "isomer/mixers/cost.h"

namespace isomer {

namespace {
/// Of products with these parameters.
ModelCost products(Index parameters) { return {.parameters = parameters, .flops_per_token = 2 * double(parameters)}; }

ModelCost& operator+=(ModelCost& a, const ModelCost& b) {
  a.parameters += b.parameters;
  a.flops_per_token += b.flops_per_token;
  a.law_flops += b.law_flops;
  a.state_floats += b.state_floats;
  a.kept_floats += b.kept_floats;
  return a;
}

ModelCost norm(const ModelConfig& config) {
  const Index D = config.width;
  return {.parameters = config.norm == Norm::layer ? 2 * D : D, .flops_per_token = 4 * double(D), .kept_floats = double(D)};
}

/// `known` are the parameters of the whole model that earlier layers have counted.
ModelCost layer(const ModelConfig& config, Index at, Index T, std::set<std::string>& known) {
  const graph::Graph graph = layer_graph(config, at);
  Cost mixer = cost_of(graph, T);
  for (const graph::Node& node : graph.nodes)
    if (const auto* w = std::get_if<graph::Parameter>(&node.work); w != nullptr && w->shared)
      if (!known.insert(shared_name(graph, node)).second) mixer.parameters -= parameters_of(graph, node);
  // A sum of branch and stream, and what dropout left of the branch.
  const double residual = double(config.width) * (config.dropout > 0 ? 2 : 1);
  ModelCost cost{.parameters = mixer.parameters,
                 .flops_per_token = mixer.flops_per_token,
                 .law_flops = mixer.law_flops,
                 .state_floats = mixer.state_floats + T * mixer.state_per_token,
                 .kept_floats = mixer.kept_floats + residual};
  cost += norm(config);
  if (config.mlp == MlpKind::none) return cost;
  cost += norm(config);
  const double hidden = double(hidden_size(mlp_options(config), config.width));
  cost.kept_floats += residual + double(config.width) + hidden * (config.mlp == MlpKind::swiglu ? 3 : 2);
  cost += products((config.mlp == MlpKind::swiglu ? 3 : 2) * config.width * hidden_size(mlp_options(config), config.width));
  return cost;
}
}  // namespace

ModelCost cost_of(const ModelConfig& config, Index T) {
  check(config);
  const Index D = config.width, labels = labels_of(config);
  const bool tokens = labels_tokens(config.kind);
  ModelCost cost = norm(config);
  if (config.vocabulary > 0)
    cost.parameters += config.vocabulary * D;
  else
    cost += products((config.features + 1) * D);
  if (config.positions) cost.parameters += config.length * D;
  std::set<std::string> known;
  double largest = 0;
  for (Index at = 0; at < Index(config.layers.size()); ++at) {
    const ModelCost one = layer(config, at, T, known);
    largest = std::max(largest, one.kept_floats);
    cost += one;
  }
  cost.layer_floats = largest;
  // What goes into the first layer, before and after positions are added.
  cost.kept_floats += double(D) * (config.positions ? 2 : 1);
  for (Index i = 0; config.kind == ModelKind::autoencoder && i < kDecoderLayers; ++i) {
    cost += norm(config);
    cost += products((D + 1) * D);
  }
  if (!tokens || !config.tied) cost.parameters += labels * (tokens ? D : D + 1);
  // One row of logits a sequence costs next to nothing.
  if (tokens) cost.flops_per_token += 2 * double(labels) * double(D);
  return cost;
}

}  // namespace isomer

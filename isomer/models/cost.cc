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

/// For each token that they leave.
ModelCost convolutions(const ModelConfig& config) {
  ModelCost cost;
  double rows = 1;
  for (std::size_t i = config.convolutions.size(); i-- > 0; rows *= double(config.convolutions[i])) {
    const Index read = 3 * (i == 0 ? config.features : config.width);
    const Index numbers = (read + 1) * config.width;
    cost += {.parameters = numbers,
             .flops_per_token = 2 * rows * double(numbers),
             .kept_floats = rows * double(read + 2 * config.width)};
  }
  return cost;
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
  const auto branch = [&] {
    cost += norm(config);
    if (block_options(config, at).place == NormPlace::both) cost += norm(config);
    if (config.layer_scale) cost += ModelCost{.parameters = config.width, .kept_floats = double(config.width)};
  };
  branch();
  if (config.mlp == MlpKind::none) return cost;
  branch();
  const int matrices = activation_of(config.mlp).gated ? 3 : 2;
  const double hidden = double(hidden_size(mlp_options(config), config.width));
  cost.kept_floats += residual + double(config.width) + hidden * matrices;
  cost += products(matrices * config.width * Index(hidden));
  // The mix with the token before.
  if (config.mlp == MlpKind::channel_mix)
    cost += {.parameters = config.width,
             .flops_per_token = 3 * double(config.width) + 2 * hidden,
             .state_floats = config.width,
             .kept_floats = 2 * double(config.width)};
  if (config.mlp_bias) cost.parameters += (matrices - 1) * Index(hidden) + config.width;
  return cost;
}
}  // namespace

ModelCost cost_of(const ModelConfig& config, Index T) {
  check(config);
  const Index D = config.width, labels = labels_of(config);
  const bool tokens = labels_tokens(config.kind);
  ModelCost cost;
  if (config.last_norm) cost += norm(config);
  if (config.front_norm) cost += norm(config);
  if (config.vocabulary > 0)
    cost.parameters += config.vocabulary * D;
  else if (config.convolutions.empty())
    cost += products((config.features + 1) * D);
  else
    cost += convolutions(config);
  if (config.positions && !config.fixed_positions) cost.parameters += config.length * D;
  cost.parameters += (config.types + (config.class_token ? 1 : 0)) * D;
  if (config.pooler) cost.parameters += (D + 1) * D;
  if (config.head_transform) {
    cost += products((D + 1) * D);
    cost += norm(config);
  }
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
  if (config.kind == ModelKind::table) cost += products(2 * D);
  if (config.head_hidden > 0) cost += products((D + 1) * config.head_hidden);
  const Index read = config.head_hidden > 0 ? config.head_hidden : D;
  if (!tokens || !config.tied) cost.parameters += labels * (tokens ? read : read + 1);
  if (tokens && config.head_bias) cost.parameters += labels;
  // One row of logits a sequence costs next to nothing.
  if (tokens) cost.flops_per_token += 2 * double(labels) * double(read);
  return cost;
}

}  // namespace isomer

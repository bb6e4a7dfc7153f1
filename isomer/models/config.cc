#include "isomer/models/config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"
#include "isomer/mixers/preset.h"

namespace isomer {

namespace {
// In the order of ModelKind.
constexpr std::array<std::string_view, 9> kKinds{"language",    "classifier", "encoder",   "vision", "regression",
                                                 "autoencoder", "masked",     "embedding", "table"};
constexpr std::array<std::string_view, 3> kPools{"mean", "first", "last"}, kHeadActivations{"gelu", "relu", "none"};
// Far above what fits into memory, and far below where products of two overflow.
constexpr Index kLargestWidth = Index{1} << 20, kLargestHidden = Index{1} << 26, kMost = Index{1} << 31;
constexpr Index kMostConvolutions = 16, kLargestStride = 16;

void check_size(const char* what, Index size, Index least, Index most) {
  require(size >= least && size <= most, "model", "expected ", what, " from ", least, " to ", most, ", got ", size);
}

/// Does the preset offer causal=false, and has nobody asked for either?
bool may_see_all(const LayerConfig& layer, const Place& place) {
  if (layer.options.contains("causal")) return false;
  for (const MixerOption& option : options_of(find_preset(layer.preset), place, layer.options))
    if (option.name == "causal") return true;
  return false;
}

bool sees_all(ModelKind kind) {
  using enum ModelKind;
  return kind == encoder || kind == vision || kind == masked || kind == embedding || kind == table;
}

graph::Graph build(const ModelConfig& config, Index layer) {
  const LayerConfig& own = config.layers[std::size_t(layer)];
  const Index before = std::count_if(config.layers.begin(), config.layers.begin() + layer,
                                     [&](const LayerConfig& other) { return other.preset == own.preset; });
  const Place place{.width = config.width, .layer = layer, .layers = Index(config.layers.size()), .before = before};
  graph::Graph graph = build_mixer(own.preset, place, own.options);
  if (!sees_all(config.kind) || !may_see_all(own, place)) return graph;
  Settings options = own.options;
  options["causal"] = "false";
  try {
    return build_mixer(own.preset, place, options);
  } catch (const Error&) {
    // Its other options need the order of tokens.
    return graph;
  }
}
}  // namespace

std::string_view name_of(ModelKind kind) { return kKinds[std::size_t(kind)]; }

ModelKind model_kind_named(std::string_view name) { return ModelKind(position_of("model kind", name, kKinds)); }

bool labels_tokens(ModelKind kind) {
  using enum ModelKind;
  return kind == language || kind == autoencoder || kind == masked || kind == table;
}

std::string_view name_of(Pool pool) { return kPools[std::size_t(pool)]; }

Pool pool_named(std::string_view name) { return Pool(position_of("pool", name, kPools)); }

std::string_view name_of(HeadActivation activation) { return kHeadActivations[std::size_t(activation)]; }

HeadActivation head_activation_named(std::string_view name) {
  return HeadActivation(position_of("head_activation", name, kHeadActivations));
}

Index labels_of(const ModelConfig& config) {
  if (config.kind == ModelKind::regression) return config.outputs;
  if (config.kind == ModelKind::embedding) return 0;
  if (config.kind == ModelKind::table) return config.classes;
  return labels_tokens(config.kind) && (config.tied || config.classes == 0) ? config.vocabulary : config.classes;
}

Index tokens_of(const ModelConfig& config, Index inputs) {
  for (const Index stride : config.convolutions) inputs = ceil_div(inputs, stride);
  return inputs;
}

namespace {
void check_front(const ModelConfig& config) {
  const char* kind = name_of(config.kind).data();
  require((config.vocabulary > 0) != (config.features > 0), kind, "expected either a vocabulary or features, got ",
          config.vocabulary, " and ", config.features);
  require(config.types == 0 || config.vocabulary > 0, "types", "expected tokens that have them, got vectors");
  require(!config.positions || config.length > 0, kind, "expected the length of a sequence, got 0");
  require(!config.fixed_positions || (config.positions && config.width % 2 == 0), "fixed_positions",
          "expected positions and an even width");
  require(config.convolutions.empty() || (config.features > 0 && config.kind != ModelKind::table), "convolutions",
          "expected vectors, and not those of a table");
  check_size("a number of convolutions", Index(config.convolutions.size()), 0, kMostConvolutions);
  for (const Index stride : config.convolutions) check_size("a stride", stride, 1, kLargestStride);
}
}  // namespace

void check(const ModelConfig& config) {
  using enum ModelKind;
  check_size("a width", config.width, 1, kLargestWidth);
  check_size("a number of layers", Index(config.layers.size()), 1, kMostLayers);
  check_size("vocabulary", config.vocabulary, 0, kMost);
  check_size("features", config.features, 0, kMost);
  check_size("classes", config.classes, 0, kMost);
  check_size("outputs", config.outputs, 0, kMost);
  check_size("a length", config.length, 0, kMost);
  check_size("types", config.types, 0, kMost);
  check_size("mlp_hidden", config.mlp_hidden, 0, kLargestHidden);
  check_size("head_hidden", config.head_hidden, 0, kLargestHidden);
  const char* kind = name_of(config.kind).data();
  const bool of_tokens = labels_tokens(config.kind);
  check_front(config);
  require(config.kind != table || config.features > 0, kind, "expected vectors, got tokens");
  require(!of_tokens || config.kind == table || config.vocabulary > 0, kind, "expected tokens, got vectors of ", config.features);
  require(labels_of(config) > 0 || config.kind == embedding, kind, "expected ", config.kind == regression ? "outputs" : "classes",
          ", got 0");
  require(!of_tokens || config.classes <= labels_of(config), kind, "a tied output has the ", config.vocabulary,
          " tokens as classes, got ", config.classes, "; tied=false has its own");
  require(config.mlp_factor >= 0 && config.mlp_factor <= 64, "mlp_factor", "expected a number from 0 to 64, got ",
          config.mlp_factor);
  require(config.dropout >= 0 && config.dropout < 1, "dropout", "expected a number from 0 to below 1, got ", config.dropout);
  require(config.logit_cap >= 0 && std::isfinite(config.logit_cap), "logit_cap", "expected a number >= 0, got ",
          config.logit_cap);
  require(config.deviation >= 0 && std::isfinite(config.deviation), "deviation", "expected a number >= 0, got ",
          config.deviation);
  require(config.qk_identity >= 0 && std::isfinite(config.qk_identity), "qk_identity", "expected a number >= 0, got ",
          config.qk_identity);
  require(config.labels.empty() || Index(config.labels.size()) == labels_of(config), "labels", "expected ", labels_of(config),
          " names, got ", config.labels.size());
  require(config.norm != Norm::l2, "norm", "expected rms or layer, got l2");
  require(config.norm_eps > 0 && std::isfinite(config.norm_eps), "norm_eps", "expected a positive number, got ", config.norm_eps);
  require(std::isfinite(config.embedding_scale), "embedding_scale", "expected a number, got ", config.embedding_scale);
  require(!config.head_transform || config.kind == masked, "head_transform", "expected a masked model, got one of kind ", kind);
  require(config.kind != table || !config.tied, kind, "expected tied=false, for rows have no embedding");
  require(config.kind != table || !config.class_token, kind, "expected no class_token");
  require(config.head_hidden == 0 ||
              (!config.head_transform && !(of_tokens && config.tied) && config.kind != embedding && config.kind != regression),
          "head_hidden", "expected a head of its own that has labels and no head_transform");
  require(config.head_activation == HeadActivation::gelu || config.head_hidden > 0, "head_activation",
          "expected head_hidden, got 0");
  require(!config.class_token || sees_all(config.kind), "class_token", "expected a model that sees all tokens, got one of kind ",
          kind);
}

BlockOptions block_options(const ModelConfig& config, Index layer) {
  return {.norm = {.kind = config.norm, .eps = config.norm_eps},
          .mlp = mlp_options(config, layer),
          .place = config.layers[std::size_t(layer)].norm_place.value_or(config.norm_place),
          .scale = config.layer_scale};
}

MlpOptions mlp_options(const ModelConfig& config, Index layer) {
  return {.kind = config.mlp,
          .hidden = config.mlp_hidden > 0 ? config.mlp_hidden : Index(std::llround(config.mlp_factor * double(config.width))),
          .bias = config.mlp_bias,
          .deviation = config.deviation,
          .down_deviation = config.deviation / std::sqrt(2.0 * double(config.layers.size())),
          .rest = 1 - double(layer) / double(config.layers.size())};
}

graph::Graph layer_graph(const ModelConfig& config, Index layer) {
  graph::Graph graph = build(config, layer);
  const graph::Init fallback;
  for (graph::Node& node : graph.nodes) {
    auto* linear = std::get_if<graph::Linear>(&node.work);
    if (linear == nullptr || linear->weight.kind != fallback.kind || linear->weight.a != fallback.a ||
        linear->weight.b != fallback.b)
      continue;
    const bool output = &node == &graph.nodes.back();
    linear->weight.b = config.deviation / (output ? std::sqrt(2.0 * double(config.layers.size())) : 1.0);
    if (config.qk_identity > 0 && (node.parameters == "q" || node.parameters == "k"))
      linear->weight = {.kind = graph::Init::Kind::near_identity, .a = config.qk_identity, .b = config.deviation};
  }
  return graph;
}

}  // namespace isomer

#pragma once
// For tests of models only: small models of every kind with random weights and inputs.
#include <gtest/gtest.h>

#include <vector>

#include "isomer/base/rng.h"
#include "isomer/models/model.h"
#include "isomer/nn/init.h"

namespace isomer::testing {

/// Layers of all five laws.
[[nodiscard]] inline std::vector<LayerConfig> hybrid_layers() {
  return {{"gla", {{"heads", "2"}}},   {"sliding-window", {{"heads", "2"}, {"window", "4"}}},
          {"mlstm", {{"heads", "2"}}}, {"gated-deltanet", {{"heads", "2"}, {"key", "4"}, {"value", "4"}}},
          {"mamba", {{"state", "3"}}}, {"softmax", {{"heads", "2"}}}};
}

/// A config of a kind, with sizes that differ from each other.
[[nodiscard]] inline ModelConfig small_config(ModelKind kind) {
  ModelConfig config{.kind = kind, .width = 8, .layers = {{"softmax", {{"heads", "2"}}}, {"gla", {{"heads", "2"}}}}, .length = 9};
  const bool vectors = kind == ModelKind::vision || kind == ModelKind::regression || kind == ModelKind::table;
  (vectors ? config.features : config.vocabulary) = 11;
  config.positions = kind == ModelKind::vision;
  if (kind == ModelKind::regression) config.outputs = 3;
  if (kind == ModelKind::classifier || kind == ModelKind::encoder || kind == ModelKind::vision) config.classes = 5;
  if (kind == ModelKind::table) {
    config.layers[1] = {"linear-elu", {{"heads", "2"}}};
    config.tied = false;
    config.head_bias = true;
    config.head_hidden = 6;
    config.classes = 5;
  }
  return config;
}

/// An encoder of frames of sound, as Whisper: convolutions that halve them, fixed positions, a linear layer in its head.
[[nodiscard]] inline ModelConfig frames_config() {
  ModelConfig config = small_config(ModelKind::vision);
  config.kind = ModelKind::encoder;
  config.convolutions = {1, 2};
  config.positions = config.fixed_positions = true;
  config.head_activation = HeadActivation::none;
  config.head_hidden = 6;
  return config;
}

/// A language model with layers of all laws, two of which share values, MLPs that remember a token, and learned positions.
[[nodiscard]] inline ModelConfig hybrid_config(Index length) {
  ModelConfig config = small_config(ModelKind::language);
  config.layers = hybrid_layers();
  config.layers.push_back({"rwkv7", {{"heads", "2"}}});
  config.layers.push_back({"rwkv7", {{"heads", "2"}}});
  config.mlp = MlpKind::channel_mix;
  config.positions = true;
  config.length = length;
  return config;
}

/// Inputs of the right sizes for a config; every third label does not count.
struct Data {
  Index B, T;
  std::vector<std::int64_t> tokens, labels;
  std::vector<float> inputs, targets, known = {};
  std::vector<Index> lengths = {};

  Data(const ModelConfig& config, Index own_B, Index own_T, std::uint64_t seed = 1) : B(own_B), T(own_T) {
    Rng rng(seed);
    const auto below = [&](Index n) { return std::int64_t(rng.uniform() * double(n)); };
    for (Index i = 0; config.vocabulary > 0 && i < B * T; ++i) tokens.push_back(below(config.vocabulary));
    for (Index i = 0; i < B * T * config.features; ++i) inputs.push_back(float(rng.normal()));
    for (Index i = 0; i < B * config.outputs; ++i) targets.push_back(float(rng.normal()));
    const Index count = config.kind == ModelKind::regression ? 0 : labels_tokens(config.kind) ? B * T : B;
    for (Index i = 0; config.kind == ModelKind::table && i < B * (T - 2); ++i) known.push_back(float(below(config.classes)));
    for (Index i = 0; i < count; ++i) labels.push_back(i % 3 == 2 ? -100 : below(labels_of(config)));
  }
  [[nodiscard]] ModelInput input() const { return {B, T, tokens, labels, inputs, targets, lengths, {}, known}; }
};

template <class T>
struct SmallModel {
  Parameters<T> parameters;
  Model<T> model;

  explicit SmallModel(const ModelConfig& config, std::uint64_t seed = 1, Type storage = type_of<T>)
      : parameters(storage), model(config, parameters) {
    initialise(parameters, seed);
    // Weights of the size that training gives them: at the start many gradients are nearly 0.
    Rng rng(seed);
    for (const Parameter<T>& p : parameters.all())
      if (p.name().ends_with("weight") && p.spec.shape.size() == 2 && p.storage() == type_of<T>)
        for (T& x : p.values()) x += T(0.3 * rng.normal());
  }
};

}  // namespace isomer::testing

// Mamba-2: blocks of one mixer without an MLP.
#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
ModelConfig model(const ForeignConfig& c) {
  c.one_of("hidden_act", {"silu"}, "silu");
  c.without({"use_bias"});
  c.without_limit("time_step_limit");
  if (!c.flag("use_conv_bias", true)) c.fail("use_conv_bias: expected true, which is all that is supported, got false");
  const Index width = c.size("hidden_size"), expand = c.size("expand", 2), heads = c.size("num_heads", 128);
  if (heads * c.size("head_dim", 64) != expand * width)
    c.fail("num_heads: expected num_heads * head_dim = expand * hidden_size = " + std::to_string(expand * width));
  ModelConfig model{.width = width,
                    .mlp = MlpKind::none,
                    .norm_eps = c.number("layer_norm_epsilon", 1e-5),
                    .tied = c.flag("tie_word_embeddings", false),
                    .vocabulary = c.size("vocab_size")};
  LayerConfig layer{.preset = "mamba2"};
  layer.options = {{"expand", std::to_string(expand)},
                   {"heads", std::to_string(heads)},
                   {"key", std::to_string(c.size("state_size", 128))},
                   {"groups", std::to_string(c.size("n_groups", 8))},
                   {"conv", std::to_string(c.size("conv_kernel", 4))},
                   {"norm_eps", text_of_option(model.norm_eps)}};
  model.layers.assign(std::size_t(c.layers()), layer);
  return model;
}

void weights(const ForeignConfig& c, WeightTable& table) {
  const Index inner = c.size("expand", 2) * c.size("hidden_size"), heads = c.size("num_heads", 128);
  const Index mixed = inner + 2 * c.size("n_groups", 8) * c.size("state_size", 128);
  const Frame frame{"backbone.", "embeddings", "norm_f", 0, c.flag("tie_word_embeddings", false)};
  frame_weights(c, table, frame, [&](const WeightTable::Scope& layer, Index) {
    const WeightTable::Scope mixer = layer.in("mixer.", "mixer.");
    layer.linear("norm1", "norm");
    mixer.take("z.weight", "in_proj.weight").rows(0, inner);
    mixer.take("xbc.weight", "in_proj.weight").rows(inner, mixed);
    mixer.take("step.weight", "in_proj.weight").rows(inner + mixed, heads);
    mixer.take("step.bias", "dt_bias");
    mixer.linear("conv", "conv1d", true);
    mixer.take("a_log", "A_log");
    mixer.take("d", "D");
    mixer.take("norm.weight", "norm.weight").reshaped();
    mixer.linear("o", "out_proj");
  });
}
}  // namespace

extern const Architecture mamba2{.name = "mamba2", .types = {"mamba2"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

// Mamba: blocks of one mixer without an MLP. FalconMamba has norms without weights of steps, inputs and outputs of the scan.
#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
bool is_falcon(const ForeignConfig& c) { return c.type() == "falcon_mamba"; }

ModelConfig model(const ForeignConfig& c) {
  c.one_of("hidden_act", {"silu"}, "silu");
  c.without({"use_bias"});
  if (!c.flag("use_conv_bias", true)) c.fail("use_conv_bias: expected true, which is all that is supported, got false");
  const Index width = c.size("hidden_size"), expand = c.size("expand", 2);
  if (c.size("intermediate_size", expand * width) != expand * width)
    c.fail("intermediate_size: expected expand * hidden_size = " + std::to_string(expand * width));
  ModelConfig model{.width = width,
                    .mlp = MlpKind::none,
                    .norm_eps = c.number("layer_norm_epsilon", 1e-5),
                    .tied = c.flag("tie_word_embeddings", true),
                    .vocabulary = c.size("vocab_size")};
  const Json* rank = c.find("time_step_rank");
  LayerConfig layer{.preset = "mamba"};
  layer.options = {{"expand", std::to_string(expand)},
                   {"state", std::to_string(c.size("state_size", 16))},
                   {"conv", std::to_string(c.size("conv_kernel", 4))}};
  if (rank != nullptr && rank->is_integer()) layer.options["step_rank"] = std::to_string(c.size("time_step_rank"));
  if (is_falcon(c)) layer.options["scan_norm_eps"] = text_of_option(c.number("mixer_rms_eps", 1e-6));
  model.layers.assign(std::size_t(c.layers()), layer);
  return model;
}

void weights(const ForeignConfig& c, WeightTable& table) {
  const Index width = c.size("hidden_size"), inner = c.size("expand", 2) * width, state = c.size("state_size", 16);
  const Json* given = c.find("time_step_rank");
  const Index rank = given != nullptr && given->is_integer() ? c.size("time_step_rank") : (width + 15) / 16;
  const Frame frame{"backbone.", "embeddings", "norm_f", 0, c.flag("tie_word_embeddings", true)};
  frame_weights(c, table, frame, [&](const WeightTable::Scope& layer, Index) {
    const WeightTable::Scope mixer = layer.in("mixer.", "mixer.");
    layer.linear("norm1", "norm");
    mixer.take("u.weight", "in_proj.weight").rows(0, inner);
    mixer.take("z.weight", "in_proj.weight").rows(inner, inner);
    mixer.linear("conv", "conv1d", true);
    mixer.take("step_down.weight", "x_proj.weight").rows(0, rank);
    mixer.take("b.weight", "x_proj.weight").rows(rank, state);
    mixer.take("c.weight", "x_proj.weight").rows(rank + state, state);
    mixer.linear("step", "dt_proj", true);
    mixer.take("a_log", "A_log");
    mixer.take("d", "D");
    mixer.linear("o", "out_proj");
  });
}
}  // namespace

extern const Architecture mamba{.name = "mamba", .types = {"mamba", "falcon_mamba"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

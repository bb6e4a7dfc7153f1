// GPT-2: learned positions, layer norms, GELU with tanh, biases everywhere; its matrices are stored [in, out].
#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
ModelConfig model(const ForeignConfig& c) {
  const std::string activation = c.one_of("activation_function", {"gelu_new", "gelu_pytorch_tanh", "gelu"}, "gelu_new");
  c.without({"scale_attn_by_inverse_layer_idx", "add_cross_attention"});
  const Index width = c.size("n_embd");
  ModelConfig model{.width = width,
                    .mlp = activation == "gelu" ? MlpKind::gelu_erf : MlpKind::gelu,
                    .mlp_hidden = c.size("n_inner", 4 * width),
                    .mlp_bias = true,
                    .norm = Norm::layer,
                    .norm_eps = c.number("layer_norm_epsilon", 1e-5),
                    .tied = c.flag("tie_word_embeddings", true),
                    .positions = true,
                    .vocabulary = c.size("vocab_size"),
                    .length = c.size("n_positions")};
  LayerConfig layer{.preset = "softmax"};
  layer.options = {{"heads", std::to_string(c.size("n_head"))}, {"position", "none"}, {"bias", "true"}, {"output_bias", "true"}};
  if (!c.flag("scale_attn_weights", true)) layer.options["scale"] = "1";
  model.layers.assign(std::size_t(c.layers("n_layer")), layer);
  return model;
}

void weights(const ForeignConfig& c, WeightTable& table) {
  const Index D = c.size("n_embd");
  const WeightTable::Scope all = table.in("", c.is_for("Model") && !c.is_for("LMHeadModel") ? "" : "transformer.");
  all.linear("embedding", "wte");
  all.linear("positions", "wpe");
  all.linear("norm", "ln_f", true);
  for (Index i = 0; i < c.layers("n_layer"); ++i) {
    const std::string number = std::to_string(i) + ".";
    const WeightTable::Scope layer = all.in("layers." + number, "h." + number), mixer = layer.in("mixer.", "attn.");
    const auto turned = [&](const WeightTable::Scope& at, const char* ours, const char* theirs) {
      at.take(std::string(ours) + ".weight", std::string(theirs) + ".weight").transposed();
      at.take(std::string(ours) + ".bias", std::string(theirs) + ".bias");
    };
    layer.linear("norm1", "ln_1", true);
    layer.linear("norm2", "ln_2", true);
    Index first = 0;
    for (const char* part : {"q", "k", "v"}) {
      mixer.take(std::string(part) + ".weight", "c_attn.weight").rows(first, D).transposed();
      mixer.take(std::string(part) + ".bias", "c_attn.bias").rows(first, D);
      first += D;
    }
    turned(mixer, "o", "c_proj");
    turned(layer, "mlp.up", "mlp.c_fc");
    turned(layer, "mlp.down", "mlp.c_proj");
  }
  if (c.flag("tie_word_embeddings", true))
    table.leave("lm_head.weight");
  else
    table.in("", "").linear("head", "lm_head");
  table.leave(".attn.bias");
  table.leave(".attn.masked_bias");
}
}  // namespace

extern const Architecture gpt2{.name = "gpt2", .types = {"gpt2"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

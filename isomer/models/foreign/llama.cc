// Llama and its relatives: rotary positions, grouped heads, RMS norms, SwiGLU. Mistral has a window, Qwen2 biases of q, k and v,
// Qwen3 a norm of each head's q and k; OLMo 2 norms all of them together, and what mixer and MLP add.
#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
bool biased(const ForeignConfig& c) { return c.type() == "qwen2" || c.flag("attention_bias", false); }

bool norms_keys(const ForeignConfig& c) { return c.type() == "qwen3" || c.type() == "olmo2"; }

/// Of layer i; 0: it sees all tokens.
Index window_of(const ForeignConfig& c, Index layer) {
  const bool windows = c.type() == "mistral" || c.flag("use_sliding_window", false);
  if (!windows || !c.has("sliding_window")) return 0;
  const Json* types = c.find("layer_types");
  if (types != nullptr && types->is_array() && layer < Index(types->items().size()))
    return types->items()[std::size_t(layer)] == Json("sliding_attention") ? c.size("sliding_window") : 0;
  // Qwen2 without a list: those from max_window_layers on.
  if (c.type().starts_with("qwen") && layer < c.size("max_window_layers", 28)) return 0;
  return c.size("sliding_window");
}

ModelConfig model(const ForeignConfig& c) {
  c.one_of("hidden_act", {"silu"}, "silu");
  c.without({"mlp_bias"});
  const Index width = c.size("hidden_size"), heads = c.size("num_attention_heads");
  ModelConfig model{.width = width,
                    .mlp_hidden = c.size("intermediate_size"),
                    .norm_eps = c.number("rms_norm_eps", 1e-6),
                    .norm_place = c.type() == "olmo2" ? NormPlace::branch : NormPlace::before,
                    .tied = c.flag("tie_word_embeddings", false),
                    .vocabulary = c.size("vocab_size"),
                    .length = c.size("max_position_embeddings", 0)};
  const Index head = c.size("head_dim", width / heads);
  for (Index layer = 0; layer < c.layers(); ++layer) {
    const Index window = window_of(c, layer);
    LayerConfig one{.preset = window > 0 ? "sliding-window" : "softmax"};
    one.options = {{"heads", std::to_string(heads)},
                   {"key", std::to_string(head)},
                   {"value", std::to_string(head)},
                   {"kv_heads", std::to_string(c.size("num_key_value_heads", heads))}};
    rope_options(c, one.options);
    if (window > 0) one.options["window"] = std::to_string(window);
    if (biased(c)) one.options["bias"] = "true";
    if (c.flag("attention_bias", false) && c.type() == "llama") one.options["output_bias"] = "true";
    if (norms_keys(c)) {
      one.options["qk_norm"] = c.type() == "qwen3" ? "head" : "all";
      one.options["qk_norm_eps"] = text_of_option(model.norm_eps);
    }
    model.layers.push_back(std::move(one));
  }
  return model;
}

void weights(const ForeignConfig& c, WeightTable& table) {
  frame_weights(c, table, {.tied = c.flag("tie_word_embeddings", false)}, [&](const WeightTable::Scope& layer, Index) {
    const WeightTable::Scope mixer = layer.in("mixer.", "self_attn.");
    const bool olmo = c.type() == "olmo2";
    layer.linear("norm1", olmo ? "post_attention_layernorm" : "input_layernorm");
    layer.linear("norm2", olmo ? "post_feedforward_layernorm" : "post_attention_layernorm");
    projections(mixer, {"q", "k", "v"}, biased(c));
    mixer.linear("o", "o_proj", c.type() == "llama" && c.flag("attention_bias", false));
    if (norms_keys(c)) {
      mixer.linear("q_norm", "q_norm");
      mixer.linear("k_norm", "k_norm");
    }
    mlp_weights(layer);
  });
  table.leave("rotary_emb.inv_freq");
}
}  // namespace

extern const Architecture llama{
    .name = "llama", .types = {"llama", "mistral", "olmo2", "qwen2", "qwen3"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

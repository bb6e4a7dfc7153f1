// Gemma 3, the text model: norms before and behind mixer and MLP with weights 1 + w, a norm of each head's q and k, windows in
// most layers with angles of their own, GEGLU, an embedding times the root of the width.
#include <cmath>

#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
bool has_window(const ForeignConfig& c, Index layer) {
  if (const Json* types = c.find("layer_types"); types != nullptr && types->is_array() && layer < Index(types->items().size()))
    return types->items()[std::size_t(layer)] == Json("sliding_attention");
  return (layer + 1) % c.size("sliding_window_pattern", 6) != 0;
}

/// Angles of layers with a window are those of rope_local_base_freq; newer files have a part for each kind of layer.
void angles(const ForeignConfig& c, bool window, Settings& options) {
  const char* kind = window ? "sliding_attention" : "full_attention";
  if (c.has("rope_parameters") && c.part("rope_parameters").has(kind)) {
    const ForeignConfig own = c.part("rope_parameters").part(kind);
    own.one_of("rope_type", {"default"}, "default");
    options["rope_base"] = text_of_option(own.number("rope_theta", window ? 1e4 : 1e6));
  } else if (window) {
    options["rope_base"] = text_of_option(c.number("rope_local_base_freq", 1e4));
  } else {
    rope_options(c, options, c.number("rope_theta", 1e6));
  }
}

ModelConfig model(const ForeignConfig& c) {
  c.one_of("hidden_activation", {"gelu_pytorch_tanh"}, "gelu_pytorch_tanh");
  c.without({"attention_bias", "attn_logit_softcapping", "use_bidirectional_attention"});
  const Index width = c.size("hidden_size"), heads = c.size("num_attention_heads"), head = c.size("head_dim", 256);
  ModelConfig model{.width = width,
                    .mlp = MlpKind::geglu,
                    .mlp_hidden = c.size("intermediate_size"),
                    .norm_eps = c.number("rms_norm_eps", 1e-6),
                    .norm_place = NormPlace::both,
                    .tied = c.flag("tie_word_embeddings", true),
                    .logit_cap = c.number("final_logit_softcapping", 0),
                    .embedding_scale = std::sqrt(double(width)),
                    .vocabulary = c.size("vocab_size"),
                    .length = c.size("max_position_embeddings", 0)};
  for (Index layer = 0; layer < c.layers(); ++layer) {
    const bool window = has_window(c, layer);
    LayerConfig one{.preset = window ? "sliding-window" : "softmax"};
    one.options = {{"heads", std::to_string(heads)},
                   {"key", std::to_string(head)},
                   {"value", std::to_string(head)},
                   {"kv_heads", std::to_string(c.size("num_key_value_heads", heads))},
                   {"qk_norm", "head"},
                   {"qk_norm_eps", text_of_option(model.norm_eps)},
                   {"scale", text_of_option(1 / std::sqrt(c.number("query_pre_attn_scalar", 256)))}};
    if (window) one.options["window"] = std::to_string(c.size("sliding_window", 4096));
    angles(c, window, one.options);
    model.layers.push_back(std::move(one));
  }
  return model;
}

void weights(const ForeignConfig& c, WeightTable& table) {
  const Frame frame{.norm_plus = 1, .tied = c.flag("tie_word_embeddings", true)};
  frame_weights(c, table, frame, [&](const WeightTable::Scope& layer, Index) {
    const WeightTable::Scope mixer = layer.in("mixer.", "self_attn.");
    layer.take("norm1.weight", "input_layernorm.weight").plus(1);
    layer.take("norm1_out.weight", "post_attention_layernorm.weight").plus(1);
    layer.take("norm2.weight", "pre_feedforward_layernorm.weight").plus(1);
    layer.take("norm2_out.weight", "post_feedforward_layernorm.weight").plus(1);
    projections(mixer, {"q", "k", "v", "o"});
    mixer.take("q_norm.weight", "q_norm.weight").plus(1);
    mixer.take("k_norm.weight", "k_norm.weight").plus(1);
    mlp_weights(layer);
  });
}
}  // namespace

extern const Architecture gemma3{.name = "gemma3", .types = {"gemma3_text"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

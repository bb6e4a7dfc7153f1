// Kimi Linear with dense MLPs: layers of Kimi delta attention, and of latent attention without positions, whose keys and values
// come from one normed vector.
#include <algorithm>

#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
/// Older files have the layers of both kinds in lists of numbers from 1.
bool attends(const ForeignConfig& c, Index layer) {
  const bool usual = layer > 0 && layer % 4 == 0;
  if (c.has("layer_types") || !c.has("linear_attn_config"))
    return c.text_at("layer_types", layer, {"linear_attention", "full_attention"}, usual ? 1 : 0) == "full_attention";
  const ForeignConfig own = c.part("linear_attn_config");
  const Json* list = own.find("full_attn_layers");
  if (list == nullptr || !list->is_array()) own.fail("full_attn_layers: expected a list of numbers");
  return std::ranges::any_of(list->items(), [&](const Json& one) { return one.is_integer() && one.integer() == layer + 1; });
}

/// Of the delta rule: in a part of older files, with other names.
Index size_of(const ForeignConfig& c, const char* key, const char* old, Index fallback) {
  if (c.has("linear_attn_config")) return c.part("linear_attn_config").size(old, c.size(key, fallback));
  return c.size(key, fallback);
}

bool is_dense(const ForeignConfig& c, Index layer) {
  const bool usual = layer < c.size("first_k_dense_replace", 1) || c.number("num_experts", 256) == 0;
  return c.text_at("mlp_layer_types", layer, {"sparse", "dense"}, usual ? 1 : 0) == "dense";
}

Settings attention(const ForeignConfig& c) {
  const Index heads = c.size("num_attention_heads"), common = c.size("qk_rope_head_dim", 64);
  return {{"heads", std::to_string(heads)},
          {"key", std::to_string(c.size("qk_nope_head_dim", 128) + common)},
          {"value", std::to_string(c.size("v_head_dim", 128))},
          {"position", "none"},
          {"latent", std::to_string(c.size("kv_lora_rank", 512))},
          {"common_key", std::to_string(common)}};
}

ModelConfig model(const ForeignConfig& c) {
  c.one_of("hidden_act", {"silu"}, "silu");
  c.without({"attention_bias", "q_lora_rank", "tie_word_embeddings"});
  if (c.has("mla_use_nope") && !c.flag("mla_use_nope", true))
    c.fail("mla_use_nope: expected true, which is all that is supported");
  ModelConfig model{.width = c.size("hidden_size"),
                    .mlp_hidden = c.size("intermediate_size"),
                    .norm_eps = c.number("rms_norm_eps", 1e-5),
                    .tied = false,
                    .vocabulary = c.size("vocab_size")};
  const std::string head = std::to_string(size_of(c, "linear_head_dim", "head_dim", 128));
  const Settings delta{{"heads", std::to_string(size_of(c, "linear_num_heads", "num_heads", 32))},
                       {"key", head},
                       {"value", head},
                       {"conv", std::to_string(size_of(c, "linear_conv_kernel_dim", "short_conv_kernel_size", 4))},
                       {"gate_bias", "false"},
                       {"norm_eps", text_of_option(model.norm_eps)}};
  for (Index i = 0; i < c.layers(); ++i) {
    if (!is_dense(c, i)) c.fail("mlp_layer_types: layer " + std::to_string(i) + ": mixtures of experts are not supported");
    model.layers.push_back(attends(c, i) ? LayerConfig{"softmax", attention(c)} : LayerConfig{"kda", delta});
  }
  return model;
}

void attention_weights(const WeightTable::Scope& mixer) {
  mixer.linear("q", "q_proj");
  mixer.linear("kv_down", "kv_a_proj_with_mqa");
  mixer.linear("kv_norm", "kv_a_layernorm");
  mixer.linear("kv", "kv_b_proj");
  mixer.linear("o", "o_proj");
}

void delta_weights(const WeightTable::Scope& mixer) {
  for (const std::string part : {"q", "k", "v"}) {
    mixer.linear(part, part + "_proj");
    mixer.linear(part + "_conv", part + "_conv1d");
  }
  mixer.linear("step_down", "f_a_proj");
  mixer.linear("step", "f_b_proj");
  mixer.take("step.bias", "dt_bias");
  mixer.take("a_log", "A_log").reshaped();
  mixer.linear("beta", "b_proj");
  mixer.linear("gate_down", "g_a_proj");
  mixer.linear("gate", "g_b_proj");
  mixer.linear("norm", "o_norm");
  mixer.linear("o", "o_proj");
}

void weights(const ForeignConfig& c, WeightTable& table) {
  frame_weights(c, table, {}, [&](const WeightTable::Scope& layer, Index i) {
    layer.linear("norm1", "input_layernorm");
    layer.linear("norm2", "post_attention_layernorm");
    (attends(c, i) ? attention_weights : delta_weights)(layer.in("mixer.", "self_attn."));
    // Dense ones too are written by transformers with the name of mixtures.
    for (const std::string part : {"gate", "up", "down"})
      layer.take_either("mlp." + part + ".weight", "mlp." + part + "_proj.weight", "block_sparse_moe." + part + "_proj.weight");
  });
}
}  // namespace

extern const Architecture kimi_linear{.name = "kimi_linear", .types = {"kimi_linear"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

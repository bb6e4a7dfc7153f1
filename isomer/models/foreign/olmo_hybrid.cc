// OLMo Hybrid: layers of the gated delta rule with eigenvalues below 0, norms before, and layers of attention with norms of q and
// k, norms of what is added, and often without positions.
#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
bool attends(const ForeignConfig& c, Index layer) {
  const Index layers = c.layers();
  const bool usual = layer % 4 == 3 || (layers < 4 && layer == layers - 1);
  return c.text_at("layer_types", layer, {"linear_attention", "full_attention"}, usual ? 1 : 0) == "full_attention";
}

Settings attention(const ForeignConfig& c, double eps) {
  const Index heads = c.size("num_attention_heads"), head = c.size("hidden_size") / heads;
  Settings options{{"heads", std::to_string(heads)},
                   {"key", std::to_string(head)},
                   {"value", std::to_string(head)},
                   {"kv_heads", std::to_string(c.size("num_key_value_heads", heads))},
                   {"qk_norm", "all"},
                   {"qk_norm_eps", text_of_option(eps)}};
  // A theta of null says that tokens have no positions.
  if (c.has("rope_parameters") && !c.part("rope_parameters").has("rope_theta"))
    options["position"] = "none";
  else
    rope_options(c, options);
  return options;
}

Settings delta(const ForeignConfig& c) {
  const Index heads = c.size("num_attention_heads"), keys = c.size("linear_num_key_heads", heads);
  const Index key = c.size("linear_key_head_dim", 3 * c.size("hidden_size") / 4 / keys);
  return {{"heads", std::to_string(keys)},
          {"value_heads", std::to_string(c.size("linear_num_value_heads", heads))},
          {"key", std::to_string(key)},
          {"value", std::to_string(c.size("linear_value_head_dim", 2 * key))},
          {"conv", std::to_string(c.size("linear_conv_kernel_dim", 4))},
          {"negative", c.flag("linear_allow_neg_eigval", true) ? "true" : "false"},
          {"norm_eps", "1e-05"}};
}

ModelConfig model(const ForeignConfig& c) {
  c.one_of("hidden_act", {"silu"}, "silu");
  c.without({"attention_bias"});
  ModelConfig model{.width = c.size("hidden_size"),
                    .mlp_hidden = c.size("intermediate_size"),
                    .norm_eps = c.number("rms_norm_eps", 1e-6),
                    .tied = c.flag("tie_word_embeddings", false),
                    .vocabulary = c.size("vocab_size"),
                    .length = c.size("max_position_embeddings", 0)};
  for (Index i = 0; i < c.layers(); ++i)
    model.layers.push_back(attends(c, i) ? LayerConfig{"softmax", attention(c, model.norm_eps), NormPlace::branch}
                                         : LayerConfig{"gated-deltanet", delta(c)});
  return model;
}

void attention_weights(const WeightTable::Scope& layer) {
  const WeightTable::Scope mixer = layer.in("mixer.", "self_attn.");
  // What transformers writes has the name that layers of the other kind have for their second norm.
  layer.take_either("norm1.weight", "post_attention_layernorm.weight", "feedforward_layer_norm.weight");
  layer.linear("norm2", "post_feedforward_layernorm");
  for (const char* part : {"q", "k", "v", "o"}) mixer.linear(part, std::string(part) + "_proj");
  for (const char* norm : {"q_norm", "k_norm"}) mixer.linear(norm, norm);
}

void delta_weights(const WeightTable::Scope& layer) {
  const WeightTable::Scope mixer = layer.in("mixer.", "linear_attn.");
  layer.take_either("norm1.weight", "attention_layer_norm.weight", "input_layernorm.weight");
  layer.take_either("norm2.weight", "feedforward_layer_norm.weight", "post_attention_layernorm.weight");
  for (const std::string part : {"q", "k", "v"}) {
    mixer.linear(part, part + "_proj");
    mixer.linear(part + "_conv", part + "_conv1d");
  }
  mixer.linear("step", "a_proj");
  mixer.linear("beta", "b_proj");
  mixer.linear("gate", "g_proj");
  mixer.take("step.bias", "dt_bias");
  mixer.take("a_log", "A_log");
  mixer.linear("norm", "o_norm");
  mixer.linear("o", "o_proj");
}

void weights(const ForeignConfig& c, WeightTable& table) {
  frame_weights(c, table, {.tied = c.flag("tie_word_embeddings", false)}, [&](const WeightTable::Scope& layer, Index i) {
    (attends(c, i) ? attention_weights : delta_weights)(layer);
    mlp_weights(layer);
  });
}
}  // namespace

extern const Architecture olmo_hybrid{.name = "olmo_hybrid", .types = {"olmo_hybrid"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

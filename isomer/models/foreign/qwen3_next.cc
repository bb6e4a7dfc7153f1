// Qwen3-Next and the text model of Qwen3.5, with dense MLPs: the gated delta rule, whose keys serve several values, and gated
// attention that rotates a part of each head; norms with weights 1 + w. Qwen3-Next has q, k, v and z of a group side by side.
#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
bool attends(const ForeignConfig& c, Index layer) {
  const bool usual = (layer + 1) % c.size("full_attention_interval", 4) == 0;
  return c.text_at("layer_types", layer, {"linear_attention", "full_attention"}, usual ? 1 : 0) == "full_attention";
}

struct Sizes {
  Index keys, values, key, value;
  explicit Sizes(const ForeignConfig& c)
      : keys(c.size("linear_num_key_heads", 16)),
        values(c.size("linear_num_value_heads", 32)),
        key(c.size("linear_key_head_dim", 128)),
        value(c.size("linear_value_head_dim", 128)) {
    if (values % keys != 0)
      c.fail("linear_num_value_heads: expected a multiple of linear_num_key_heads, got " + std::to_string(values));
  }
};

Settings attention(const ForeignConfig& c, double eps) {
  const Index head = c.size("head_dim", 256), heads = c.size("num_attention_heads");
  Settings options{{"heads", std::to_string(heads)},
                   {"key", std::to_string(head)},
                   {"value", std::to_string(head)},
                   {"kv_heads", std::to_string(c.size("num_key_value_heads", heads))},
                   {"gate", "true"},
                   {"qk_norm", "head"},
                   {"qk_norm_eps", text_of_option(eps)}};
  rope_options(c, options, 0, 0.25);
  return options;
}

ModelConfig model(const ForeignConfig& c) {
  c.one_of("hidden_act", {"silu"}, "silu");
  c.without({"attention_bias"});
  const double experts = c.type() == "qwen3_next" ? c.number("num_experts", 512) : 0;
  if (experts > 0)
    c.fail("num_experts: expected 0, mixtures of experts are not supported, got " + std::to_string(Index(experts)));
  ModelConfig model{.width = c.size("hidden_size"),
                    .mlp_hidden = c.size("intermediate_size"),
                    .norm_eps = c.number("rms_norm_eps", 1e-6),
                    .tied = c.flag("tie_word_embeddings", false),
                    .vocabulary = c.size("vocab_size"),
                    .length = c.size("max_position_embeddings", 0)};
  const Sizes s(c);
  const Settings delta{{"heads", std::to_string(s.keys)},
                       {"value_heads", std::to_string(s.values)},
                       {"key", std::to_string(s.key)},
                       {"value", std::to_string(s.value)},
                       {"conv", std::to_string(c.size("linear_conv_kernel_dim", 4))},
                       {"norm_eps", text_of_option(model.norm_eps)}};
  for (Index i = 0; i < c.layers(); ++i)
    model.layers.push_back(attends(c, i) ? LayerConfig{"softmax", attention(c, model.norm_eps)}
                                         : LayerConfig{"gated-deltanet", delta});
  return model;
}

void delta_weights(const ForeignConfig& c, const WeightTable::Scope& mixer) {
  const Sizes s(c);
  const Index keys = s.keys * s.key, values = s.values * s.value;
  if (c.type() == "qwen3_next") {
    const Index own = s.values / s.keys, wide = own * s.value, group = 2 * s.key + 2 * wide;
    mixer.take("q.weight", "in_proj_qkvz.weight").at(rows_of_groups(s.keys, group, 0, s.key));
    mixer.take("k.weight", "in_proj_qkvz.weight").at(rows_of_groups(s.keys, group, s.key, s.key));
    mixer.take("v.weight", "in_proj_qkvz.weight").at(rows_of_groups(s.keys, group, 2 * s.key, wide));
    mixer.take("gate.weight", "in_proj_qkvz.weight").at(rows_of_groups(s.keys, group, 2 * s.key + wide, wide));
    mixer.take("beta.weight", "in_proj_ba.weight").at(rows_of_groups(s.keys, 2 * own, 0, own));
    mixer.take("step.weight", "in_proj_ba.weight").at(rows_of_groups(s.keys, 2 * own, own, own));
  } else {
    mixer.take("q.weight", "in_proj_qkv.weight").rows(0, keys);
    mixer.take("k.weight", "in_proj_qkv.weight").rows(keys, keys);
    mixer.take("v.weight", "in_proj_qkv.weight").rows(2 * keys, values);
    mixer.linear("gate", "in_proj_z");
    mixer.linear("beta", "in_proj_b");
    mixer.linear("step", "in_proj_a");
  }
  mixer.take("q_conv.weight", "conv1d.weight").rows(0, keys);
  mixer.take("k_conv.weight", "conv1d.weight").rows(keys, keys);
  mixer.take("v_conv.weight", "conv1d.weight").rows(2 * keys, values);
  mixer.take("step.bias", "dt_bias");
  mixer.take("a_log", "A_log");
  mixer.linear("norm", "norm");
  mixer.linear("o", "out_proj");
}

void attention_weights(const ForeignConfig& c, const WeightTable::Scope& mixer) {
  const Index head = c.size("head_dim", 256), heads = c.size("num_attention_heads");
  mixer.take("q.weight", "q_proj.weight").at(rows_of_groups(heads, 2 * head, 0, head));
  mixer.take("gate.weight", "q_proj.weight").at(rows_of_groups(heads, 2 * head, head, head));
  for (const char* part : {"k", "v", "o"}) mixer.linear(part, std::string(part) + "_proj");
  for (const char* norm : {"q_norm.weight", "k_norm.weight"}) mixer.take(norm, norm).plus(1);
}

void weights(const ForeignConfig& c, WeightTable& table) {
  const Frame frame{.norm_plus = 1, .tied = c.flag("tie_word_embeddings", false)};
  frame_weights(c, table, frame, [&](const WeightTable::Scope& layer, Index i) {
    layer.take("norm1.weight", "input_layernorm.weight").plus(1);
    layer.take("norm2.weight", "post_attention_layernorm.weight").plus(1);
    const bool softmax = attends(c, i);
    (softmax ? attention_weights : delta_weights)(c, layer.in("mixer.", softmax ? "self_attn." : "linear_attn."));
    mlp_weights(layer);
  });
}
}  // namespace

extern const Architecture qwen3_next{
    .name = "qwen3_next", .types = {"qwen3_next", "qwen3_5_text"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

// Falcon-H1: softmax attention and Mamba-2 side by side in every layer, then a SwiGLU MLP. Its many multipliers are parts of our
// weights.
#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
std::vector<double> multipliers(const ForeignConfig& c, const char* key, std::size_t count) {
  const Json* list = c.find(key);
  if (list == nullptr) return std::vector<double>(count, 1.0);
  std::vector<double> all;
  for (const Json& one : list->is_array() ? list->items() : std::vector<Json>{})
    if (one.is_number() && one.number() != 0) all.push_back(one.number());
  if (all.size() != count) c.fail(std::string(key) + ": expected " + std::to_string(count) + " numbers other than 0");
  return all;
}

double multiplier(const ForeignConfig& c, const char* key) {
  const double number = c.number(key, 1);
  if (number == 0) c.fail(std::string(key) + ": expected a number other than 0");
  return number;
}

Index inner_of(const ForeignConfig& c) { return c.size("mamba_d_ssm", c.size("mamba_expand", 2) * c.size("hidden_size")); }

void refuse(const ForeignConfig& c) {
  c.one_of("hidden_act", {"silu"}, "silu");
  c.without({"attention_bias", "mlp_bias", "mamba_proj_bias", "projectors_bias"});
  if (!c.flag("mamba_conv_bias", true)) c.fail("mamba_conv_bias: expected true, which is all that is supported, got false");
  c.without_limit("time_step_limit");
}

ModelConfig model(const ForeignConfig& c) {
  refuse(c);
  const Index width = c.size("hidden_size"), heads = c.size("num_attention_heads");
  ModelConfig model{.width = width,
                    .mlp_hidden = c.size("intermediate_size"),
                    .norm_eps = c.number("rms_norm_eps", 1e-5),
                    .tied = c.flag("tie_word_embeddings", false),
                    .vocabulary = c.size("vocab_size"),
                    .length = c.size("max_position_embeddings", 0)};
  // A tied embedding has the factor of the logits.
  model.embedding_scale = multiplier(c, "embedding_multiplier") / (model.tied ? multiplier(c, "lm_head_multiplier") : 1);
  LayerConfig layer{.preset = "mamba2"};
  const std::string key = std::to_string(c.size("head_dim", width / heads));
  layer.options = {{"key", key}, {"position", "rope"}};
  rope_options(c, layer.options);
  layer.options["key"] = std::to_string(c.size("mamba_d_state", 256));
  const bool norm = c.flag("mamba_rms_norm", false);
  layer.options.insert({{"attention", std::to_string(heads)},
                        {"attention_key", key},
                        {"attention_kv_heads", std::to_string(c.size("num_key_value_heads", heads))},
                        {"inner", std::to_string(inner_of(c))},
                        {"heads", std::to_string(c.size("mamba_n_heads", 128))},
                        {"groups", std::to_string(c.size("mamba_n_groups", 1))},
                        {"conv", std::to_string(c.size("mamba_d_conv", 4))},
                        {"norm", !norm                                    ? "none"
                                 : c.flag("mamba_norm_before_gate", true) ? "before-gate"
                                                                          : "gated"}});
  if (norm) layer.options["norm_eps"] = text_of_option(model.norm_eps);
  model.layers.assign(std::size_t(c.layers()), layer);
  return model;
}

void mixer_weights(const ForeignConfig& c, const WeightTable::Scope& layer) {
  const double in = multiplier(c, "attention_in_multiplier"), ssm = multiplier(c, "ssm_in_multiplier");
  const WeightTable::Scope attention = layer.in("mixer.attention_", "self_attn."), mamba = layer.in("mixer.", "mamba.");
  attention.take("q.weight", "q_proj.weight").times(in);
  attention.take("k.weight", "k_proj.weight").times(in * multiplier(c, "key_multiplier"));
  attention.take("v.weight", "v_proj.weight").times(in);
  attention.take("o.weight", "o_proj.weight").times(multiplier(c, "attention_out_multiplier"));
  const std::vector<double> parts = multipliers(c, "ssm_multipliers", 5);  // of z, x, b, c and steps
  const Index inner = inner_of(c), group = c.size("mamba_n_groups", 1) * c.size("mamba_d_state", 256);
  std::vector<double> each(std::size_t(inner), parts[1]);
  each.insert(each.end(), std::size_t(group), parts[2]);
  each.insert(each.end(), std::size_t(group), parts[3]);
  mamba.take("z.weight", "in_proj.weight").rows(0, inner).times(ssm * parts[0]);
  mamba.take("xbc.weight", "in_proj.weight").rows(inner, inner + 2 * group).times(ssm).times_each(each);
  mamba.take("step.weight", "in_proj.weight").rows(2 * (inner + group), c.size("mamba_n_heads", 128)).times(ssm * parts[4]);
  mamba.take("step.bias", "dt_bias");
  mamba.linear("conv", "conv1d", true);
  mamba.take("a_log", "A_log");
  mamba.take("d", "D");
  if (c.flag("mamba_rms_norm", false)) mamba.take("norm.weight", "norm.weight").reshaped();
  mamba.take("o.weight", "out_proj.weight").times(multiplier(c, "ssm_out_multiplier"));
}

void weights(const ForeignConfig& c, WeightTable& table) {
  const WeightTable::Scope all = table.in("", c.is_for("Model") ? "" : "model.");
  const bool tied = c.flag("tie_word_embeddings", false);
  const double head = multiplier(c, "lm_head_multiplier");
  const std::vector<double> mlp = multipliers(c, "mlp_multipliers", 2);
  all.take("embedding.weight", "embed_tokens.weight").times(tied ? head : 1);
  all.linear("norm", "final_layernorm");
  for (Index i = 0; i < c.layers(); ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    const WeightTable::Scope layer = all.in(at, at), wide = layer.in("mlp.", "feed_forward.");
    layer.linear("norm1", "input_layernorm");
    layer.linear("norm2", "pre_ff_layernorm");
    mixer_weights(c, layer);
    wide.take("gate.weight", "gate_proj.weight").times(mlp[0]);
    wide.linear("up", "up_proj");
    wide.take("down.weight", "down_proj.weight").times(mlp[1]);
  }
  if (tied) table.leave("lm_head.weight");
  if (!tied) table.in("", "").take("head.weight", "lm_head.weight").times(head);
}
}  // namespace

extern const Architecture falcon_h1{.name = "falcon_h1", .types = {"falcon_h1"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

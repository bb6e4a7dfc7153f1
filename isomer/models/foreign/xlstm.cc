// xLSTM 7B: blocks of an mLSTM and a SwiGLU MLP; gates and logits are capped softly.
#include <cmath>

#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
Index width_of(const ForeignConfig& c) { return c.has("hidden_size") ? c.size("hidden_size") : c.size("embedding_dim"); }
Index layers_of(const ForeignConfig& c) { return c.has("num_hidden_layers") ? c.layers() : c.layers("num_blocks"); }
Index part_of_width(const ForeignConfig& c, const char* key, double fallback) {
  return Index(double(width_of(c)) * c.number(key, fallback));
}
bool fused(const ForeignConfig& c) { return c.one_of("weight_mode", {"single", "fused"}, "single") == "fused"; }

ModelConfig model(const ForeignConfig& c) {
  c.without({"use_bias", "tie_word_embeddings"});
  if (c.number("eps", 1e-6) != 1e-6) c.fail("eps: expected 1e-6, which is all that is supported, got " + c.find("eps")->dump());
  const Index heads = c.size("num_heads", 8);
  const double rounded = double(c.size("ffn_round_up_to_multiple_of", 64));
  ModelConfig model{.width = width_of(c),
                    .mlp_hidden = Index(std::ceil(double(width_of(c)) * c.number("ffn_proj_factor", 2.667) / rounded) * rounded),
                    .norm_eps = c.number("norm_eps", 1e-6),
                    .tied = false,
                    .logit_cap = c.number("output_logit_soft_cap", 30),
                    .last_norm = c.flag("add_out_norm", true),
                    .vocabulary = c.size("vocab_size")};
  LayerConfig layer{.preset = "mlstm"};
  layer.options = {{"heads", std::to_string(heads)},
                   {"key", std::to_string(part_of_width(c, "qk_dim_factor", 0.5) / heads)},
                   {"value", std::to_string(part_of_width(c, "v_dim_factor", 1) / heads)},
                   {"softcap", text_of_option(c.number("gate_soft_cap", 15))},
                   {"norm_eps", text_of_option(model.norm_eps)}};
  model.layers.assign(std::size_t(layers_of(c)), layer);
  return model;
}

/// Those of a layer whose projections are one matrix, or one each.
void projections(const ForeignConfig& c, const WeightTable::Scope& mixer, const WeightTable::Scope& mlp, Index hidden) {
  const Index key = part_of_width(c, "qk_dim_factor", 0.5), value = part_of_width(c, "v_dim_factor", 1);
  const Index heads = c.size("num_heads", 8);
  if (!fused(c)) {
    for (const char* part : {"q", "k", "v"}) mixer.linear(part, part);
    mixer.linear("gate", "ogate_preact");
    mixer.linear("i", "igate_preact", true);
    mixer.linear("f", "fgate_preact", true);
    mlp.linear("gate", "proj_up_gate");
    mlp.linear("up", "proj_up");
    return;
  }
  mixer.take("q.weight", "qkv_opreact.weight").rows(0, key);
  mixer.take("k.weight", "qkv_opreact.weight").rows(key, key);
  mixer.take("v.weight", "qkv_opreact.weight").rows(2 * key, value);
  mixer.take("gate.weight", "qkv_opreact.weight").rows(2 * key + value, value);
  for (const char* kind : {"weight", "bias"}) {
    mixer.take(std::string("i.") + kind, std::string("ifgate_preact.") + kind).rows(0, heads);
    mixer.take(std::string("f.") + kind, std::string("ifgate_preact.") + kind).rows(heads, heads);
  }
  mlp.take("gate.weight", "proj_up_gate_z.weight").rows(0, hidden);
  mlp.take("up.weight", "proj_up_gate_z.weight").rows(hidden, hidden);
}

void weights(const ForeignConfig& c, WeightTable& table) {
  const WeightTable::Scope all = table.in("", c.is_for("Model") ? "" : "backbone.");
  all.linear("embedding", "embeddings");
  if (c.flag("add_out_norm", true)) all.linear("norm", "out_norm");
  const Index hidden = model(c).mlp_hidden;
  for (Index i = 0; i < layers_of(c); ++i) {
    const std::string at = std::to_string(i) + ".";
    const WeightTable::Scope layer = all.in("layers." + at, "blocks." + at), mixer = layer.in("mixer.", "mlstm_layer."),
                             mlp = layer.in("mlp.", "ffn.");
    layer.linear("norm1", "norm_mlstm");
    layer.linear("norm2", "norm_ffn");
    projections(c, mixer, mlp, hidden);
    mixer.take("norm.weight", "multihead_norm.weight").reshaped();
    mixer.linear("o", "out_proj");
    mlp.linear("down", "proj_down");
  }
  table.in("", "").linear("head", "lm_head");
}
}  // namespace

extern const Architecture xlstm{.name = "xlstm", .types = {"xlstm"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

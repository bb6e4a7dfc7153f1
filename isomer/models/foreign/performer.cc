// Performers of performer_pytorch that label every token: random features with the stored directions beside heads that attend in
// blocks. The folder is that of tools/models, with the names of TIS Transformer's authors.
#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
Index local_heads(const ForeignConfig& c) {
  if (c.number("local_attn_heads", 0) == 0) return 0;
  const Index local = c.size("local_attn_heads");
  if (local >= c.size("heads")) c.fail("local_attn_heads: expected fewer than heads, got " + std::to_string(local));
  return local;
}

ModelConfig model(const ForeignConfig& c) {
  c.without({"causal", "generalized_attention", "no_projection", "use_scalenorm", "use_rezero", "ff_glu", "reversible"});
  const Index width = c.size("dim"), K = c.size("dim_head");
  if (K % 2 != 0) c.fail("dim_head: expected an even number, got " + std::to_string(K));
  ModelConfig model{.kind = ModelKind::masked,
                    .width = width,
                    .mlp = MlpKind::gelu_erf,
                    .mlp_hidden = 4 * width,
                    .mlp_bias = true,
                    .norm = Norm::layer,
                    .norm_eps = 1e-5,
                    .tied = false,
                    .positions = true,
                    .fixed_positions = true,
                    .last_norm = false,
                    .head_bias = true,
                    .head_hidden = 2 * width,
                    .vocabulary = c.size("num_tokens"),
                    .classes = c.classes(),
                    .length = c.size("max_seq_len") + 2,
                    .head_activation = HeadActivation::relu};
  const std::string size = std::to_string(K);
  LayerConfig layer{.preset = "performer"};
  layer.options = {{"heads", std::to_string(c.size("heads"))},
                   {"key", size},
                   {"value", size},
                   {"features", std::to_string(c.size("nb_features"))},
                   {"feature_eps", "1e-4"},
                   {"position", "rope"},
                   {"bias", "true"},
                   {"causal", "false"}};
  if (local_heads(c) > 0) {
    layer.options["local_heads"] = std::to_string(local_heads(c));
    layer.options["block"] = std::to_string(c.size("local_window_size", 256));
  }
  model.layers.assign(std::size_t(c.layers("depth")), layer);
  return model;
}

/// Of `count` vectors of K numbers, whose pairs that are rotated stand beside each other in the first `turned` of them.
std::vector<Index> places(Index count, Index turned, Index K) {
  std::vector<Index> all = rows_of_pairs(turned, K);
  for (Index i = turned * K; i < count * K; ++i) all.push_back(i);
  return all;
}

void weights(const ForeignConfig& c, WeightTable& table) {
  const Index H = c.size("heads"), K = c.size("dim_head"), m = c.size("nb_features");
  const std::vector<Index> rows = places(H, H - local_heads(c), K), directions = places(m, m, K);
  const WeightTable::Scope all = table.in("", "");
  all.linear("embedding", "nuc_emb");
  all.take("positions.weight", "pos_emb.emb");
  all.linear("head_hidden", "ff_1", true);
  all.linear("head", "ff_2", true);
  for (Index i = 0; i < c.layers("depth"); ++i) {
    const std::string number = std::to_string(i) + ".";
    const WeightTable::Scope layer = all.in("layers." + number, "transformer.net.layers." + number);
    const WeightTable::Scope mixer = layer.in("mixer.", "0.fn.");
    for (const std::string part : {"q", "k"})
      for (const std::string kind : {".weight", ".bias"}) mixer.take(part + kind, "to_" + part + kind).at(rows);
    mixer.linear("v", "to_v", true);
    mixer.linear("o", "to_out", true);
    mixer.take("features.weight", "fast_attention.projection_matrix").reshaped().at(directions);
    layer.linear("norm1", "0.norm", true);
    layer.linear("norm2", "1.norm", true);
    layer.linear("mlp.up", "1.fn.fn.w1", true);
    layer.linear("mlp.down", "1.fn.fn.w2", true);
  }
}
}  // namespace

extern const Architecture performer{.name = "performer", .types = {"performer"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

// TabPFN: rows of a table as an encoder of vectors, with norms behind each sum, exact GELU and biases everywhere. The folder is
// that of tools/models, with the names of its authors.
#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
ModelConfig model(const ForeignConfig& c) {
  c.one_of("hidden_act", {"gelu"}, "gelu");
  c.without({"norm_first"});
  ModelConfig model{.kind = ModelKind::table,
                    .width = c.size("hidden_size"),
                    .mlp = MlpKind::gelu_erf,
                    .mlp_hidden = c.size("intermediate_size"),
                    .mlp_bias = true,
                    .norm = Norm::layer,
                    .norm_eps = c.number("layer_norm_eps", 1e-5),
                    .norm_place = NormPlace::after,
                    .tied = false,
                    .last_norm = false,
                    .head_bias = true,
                    .head_hidden = c.size("intermediate_size"),
                    .classes = c.classes(),
                    .features = c.size("num_features")};
  LayerConfig layer{.preset = "softmax"};
  layer.options = {{"heads", std::to_string(c.size("num_attention_heads"))},
                   {"position", "none"},
                   {"bias", "true"},
                   {"output_bias", "true"},
                   {"causal", "false"}};
  model.layers.assign(std::size_t(c.layers()), layer);
  return model;
}

void weights(const ForeignConfig& c, WeightTable& table) {
  const Index D = c.size("hidden_size");
  const WeightTable::Scope all = table.in("", "");
  all.linear("input", "encoder", true);
  all.linear("known", "y_encoder", true);
  all.linear("head_hidden", "decoder.0", true);
  all.linear("head", "decoder.2", true);
  for (Index i = 0; i < c.layers(); ++i) {
    const std::string number = std::to_string(i) + ".";
    const WeightTable::Scope layer = all.in("layers." + number, "transformer_encoder.layers." + number);
    const WeightTable::Scope mixer = layer.in("mixer.", "self_attn.");
    Index first = 0;
    for (const std::string part : {"q", "k", "v"}) {
      mixer.take(part + ".weight", "in_proj_weight").rows(first, D);
      mixer.take(part + ".bias", "in_proj_bias").rows(first, D);
      first += D;
    }
    mixer.linear("o", "out_proj", true);
    layer.linear("mlp.up", "linear1", true);
    layer.linear("mlp.down", "linear2", true);
    layer.linear("norm1", "norm1", true);
    layer.linear("norm2", "norm2", true);
  }
}
}  // namespace

extern const Architecture tabpfn{.name = "tabpfn", .types = {"tabpfn"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

// Vision transformers on squares of a picture, with a learned token in front: ViT, and DINOv2 with a factor for each channel of
// what mixer and MLP add.
#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
bool is_dino(const ForeignConfig& c) { return c.type() == "dinov2"; }

ModelConfig model(const ForeignConfig& c) {
  const std::string activation = c.one_of("hidden_act", {"gelu", "gelu_pytorch_tanh"}, "gelu");
  c.without({"use_swiglu_ffn"});
  const Index width = c.size("hidden_size"), patch = c.size("patch_size", 16), side = c.size("image_size", 224) / patch;
  const Index channels = c.size("num_channels", 3);
  const bool bias = c.flag("qkv_bias", true), classifies = c.is_for("ForImageClassification");
  if (is_dino(c) && classifies) c.fail("architectures: expected Dinov2Model, got " + c.model_class());
  ModelConfig model{.kind = classifies ? ModelKind::vision : ModelKind::embedding,
                    .width = width,
                    .mlp = activation == "gelu" ? MlpKind::gelu_erf : MlpKind::gelu,
                    .mlp_hidden = is_dino(c) ? width * c.size("mlp_ratio", 4) : c.size("intermediate_size"),
                    .mlp_bias = true,
                    .norm = Norm::layer,
                    .norm_eps = c.number("layer_norm_eps", is_dino(c) ? 1e-6 : 1e-12),
                    .layer_scale = is_dino(c),
                    .positions = true,
                    .class_token = true,
                    .pool = Pool::first,
                    .features = channels * patch * patch,
                    .length = side * side + 1};
  if (classifies) {
    model.classes = c.classes();
    model.labels = c.labels();
  }
  LayerConfig layer{.preset = "softmax"};
  layer.options = {{"heads", std::to_string(c.size("num_attention_heads"))},
                   {"position", "none"},
                   {"bias", bias ? "true" : "false"},
                   {"output_bias", "true"},
                   {"causal", "false"}};
  model.layers.assign(std::size_t(c.layers()), layer);
  return model;
}

void weights(const ForeignConfig& c, WeightTable& table) {
  const WeightTable::Scope all = table.in("", c.is_for("Model") ? "" : "vit."), front = all.in("", "embeddings.");
  const bool bias = c.flag("qkv_bias", true), dino = is_dino(c);
  front.take("class_token", "cls_token").reshaped();
  front.take("positions.weight", "position_embeddings").reshaped();
  front.linear("input", "patch_embeddings.projection", true);
  all.linear("norm", "layernorm", true);
  for (Index i = 0; i < c.layers(); ++i) {
    const std::string number = std::to_string(i) + ".";
    const WeightTable::Scope layer = all.in("layers." + number, "encoder.layer." + number);
    layer.linear("mixer.q", "attention.attention.query", bias);
    layer.linear("mixer.k", "attention.attention.key", bias);
    layer.linear("mixer.v", "attention.attention.value", bias);
    layer.linear("mixer.o", "attention.output.dense", true);
    layer.linear("norm1", dino ? "norm1" : "layernorm_before", true);
    layer.linear("norm2", dino ? "norm2" : "layernorm_after", true);
    layer.linear("mlp.up", dino ? "mlp.fc1" : "intermediate.dense", true);
    layer.linear("mlp.down", dino ? "mlp.fc2" : "output.dense", true);
    if (dino) {
      layer.take("scale1", "layer_scale1.lambda1");
      layer.take("scale2", "layer_scale2.lambda1");
    }
  }
  if (c.is_for("ForImageClassification")) table.in("", "").linear("head", "classifier", true);
  table.leave("embeddings.mask_token");
  for (const char* end : {"pooler.dense.weight", "pooler.dense.bias"}) table.leave(end);
}
}  // namespace

extern const Architecture vit{.name = "vit", .types = {"vit", "dinov2"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

// BERT and RoBERTa: an encoder with norms behind each sum, learned positions and kinds of tokens, exact GELU, biases everywhere.
// RoBERTa's positions begin with 2; MPNet's too, which has no kinds of tokens, but a bias of each head by distance, as T5's.
#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
bool is_roberta(const ForeignConfig& c) { return c.type() != "bert"; }
bool is_mpnet(const ForeignConfig& c) { return c.type() == "mpnet"; }
Index skipped(const ForeignConfig& c) {
  if (is_mpnet(c)) return 2;
  return is_roberta(c) ? c.size("pad_token_id", 1) + 1 : 0;
}

ModelKind kind_of(const ForeignConfig& c) {
  if (c.is_for("ForMaskedLM") || c.is_for("ForPreTraining")) return ModelKind::masked;
  if (c.is_for("ForSequenceClassification")) return ModelKind::encoder;
  if (c.is_for("Model")) return ModelKind::embedding;
  c.fail("architectures: expected a model, ForMaskedLM or ForSequenceClassification, got " + c.model_class());
}

ModelConfig model(const ForeignConfig& c) {
  const std::string activation = c.one_of("hidden_act", {"gelu", "gelu_new", "gelu_pytorch_tanh"}, "gelu");
  c.one_of("position_embedding_type", {"absolute"}, "absolute");
  c.without({"is_decoder", "add_cross_attention"});
  ModelConfig model{.kind = kind_of(c),
                    .width = c.size("hidden_size"),
                    .mlp = activation == "gelu" ? MlpKind::gelu_erf : MlpKind::gelu,
                    .mlp_hidden = c.size("intermediate_size"),
                    .mlp_bias = true,
                    .norm = Norm::layer,
                    .norm_eps = c.number("layer_norm_eps", 1e-12),
                    .norm_place = NormPlace::after,
                    .positions = true,
                    .types = is_mpnet(c) ? 0 : c.size("type_vocab_size", 2),
                    .front_norm = true,
                    .last_norm = false,
                    .vocabulary = c.size("vocab_size"),
                    .length = c.size("max_position_embeddings") - skipped(c)};
  if (model.kind == ModelKind::masked) model.head_transform = model.head_bias = true;
  if (model.kind == ModelKind::encoder) {
    model.pool = Pool::first;
    model.pooler = true;
    model.classes = c.classes();
    model.labels = c.labels();
  }
  LayerConfig layer{.preset = "softmax"};
  layer.options = {{"heads", std::to_string(c.size("num_attention_heads"))},
                   {"position", "none"},
                   {"bias", "true"},
                   {"output_bias", "true"},
                   {"causal", "false"}};
  if (is_mpnet(c)) {
    layer.options["distance_bias"] = "t5";
    // Its library computes with 32, whatever the config says.
    if (c.size("relative_attention_num_buckets", 32) != 32)
      c.fail("relative_attention_num_buckets: expected 32, which is all that is supported");
  }
  model.layers.assign(std::size_t(c.layers()), layer);
  return model;
}

void read_out(const ForeignConfig& c, WeightTable& table) {
  const ModelKind kind = kind_of(c);
  const bool roberta = is_roberta(c);
  const WeightTable::Scope all = table.in("", "");
  if (kind == ModelKind::masked) {
    const WeightTable::Scope head = all.in("", roberta ? "lm_head." : "cls.predictions.");
    head.linear("transform.linear", roberta ? "dense" : "transform.dense", true);
    head.linear("transform.norm", roberta ? "layer_norm" : "transform.LayerNorm", true);
    head.take("head.bias", "bias");
    for (const char* end : {"decoder.weight", "decoder.bias", "cls.seq_relationship.weight", "cls.seq_relationship.bias"})
      table.leave(end);
  }
  if (kind == ModelKind::encoder && roberta) {
    all.linear("pooler", "classifier.dense", true);
    all.linear("head", "classifier.out_proj", true);
  } else if (kind == ModelKind::encoder) {
    all.linear("pooler", "bert.pooler.dense", true);
    all.linear("head", "classifier", true);
  }
}

void attention(const ForeignConfig& c, const WeightTable::Scope& layer) {
  if (is_mpnet(c)) {
    for (const std::string part : {"q", "k", "v", "o"}) layer.linear("mixer." + part, "attention.attn." + part, true);
    return layer.linear("norm1", "attention.LayerNorm", true);
  }
  layer.linear("mixer.q", "attention.self.query", true);
  layer.linear("mixer.k", "attention.self.key", true);
  layer.linear("mixer.v", "attention.self.value", true);
  layer.linear("mixer.o", "attention.output.dense", true);
  layer.linear("norm1", "attention.output.LayerNorm", true);
}

void weights(const ForeignConfig& c, WeightTable& table) {
  const char* base = is_mpnet(c) ? "mpnet." : is_roberta(c) ? "roberta." : "bert.";
  const WeightTable::Scope all = table.in("", c.is_for("Model") ? "" : base);
  const WeightTable::Scope front = all.in("", "embeddings.");
  front.linear("embedding", "word_embeddings");
  front.take("positions.weight", "position_embeddings.weight").rows(skipped(c), c.size("max_position_embeddings") - skipped(c));
  if (is_mpnet(c))
    all.take("shared.softmax.distance_bias", "encoder.relative_attention_bias.weight").transposed();
  else
    front.linear("types", "token_type_embeddings");
  front.linear("front_norm", "LayerNorm", true);
  for (Index i = 0; i < c.layers(); ++i) {
    const std::string number = std::to_string(i) + ".";
    const WeightTable::Scope layer = all.in("layers." + number, "encoder.layer." + number);
    attention(c, layer);
    layer.linear("mlp.up", "intermediate.dense", true);
    layer.linear("mlp.down", "output.dense", true);
    layer.linear("norm2", "output.LayerNorm", true);
  }
  read_out(c, table);
  table.leave("embeddings.position_ids");
  table.leave("embeddings.token_type_ids");
  if (kind_of(c) != ModelKind::encoder)
    for (const char* end : {"pooler.dense.weight", "pooler.dense.bias"}) table.leave(end);
}
}  // namespace

extern const Architecture bert{
    .name = "bert", .types = {"bert", "mpnet", "roberta", "xlm-roberta"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

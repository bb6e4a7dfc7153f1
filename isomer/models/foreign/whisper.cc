// Whisper: the encoder, on a spectrogram of sound, frames of num_mel_bins numbers; its mean, or that of transformers' classifier
// of sounds, is read. The decoder is left as it is.
#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
constexpr const char* kClassifier = "ForAudioClassification";

/// In front of the encoder's names.
std::string place_of_encoder(const ForeignConfig& c) {
  const std::string& name = c.model_class();
  if (name == "WhisperForConditionalGeneration") return "model.encoder.";
  if (name == "WhisperEncoder") return "";
  if (name != "WhisperModel" && !c.is_for(kClassifier))
    c.fail(
        "architectures: expected WhisperModel, WhisperEncoder, WhisperForConditionalGeneration or "
        "WhisperForAudioClassification, got " +
        (name.empty() ? "none" : name));
  return "encoder.";
}

ModelConfig model(const ForeignConfig& c) {
  c.one_of("activation_function", {"gelu"}, "gelu");
  (void)place_of_encoder(c);
  ModelConfig model{.kind = ModelKind::embedding,
                    .width = c.size("d_model"),
                    .mlp = MlpKind::gelu_erf,
                    .mlp_hidden = c.size("encoder_ffn_dim"),
                    .mlp_bias = true,
                    .norm = Norm::layer,
                    .norm_eps = 1e-5,
                    .positions = true,
                    .fixed_positions = true,
                    .features = c.size("num_mel_bins"),
                    .length = c.size("max_source_positions"),
                    .convolutions = {1, 2}};
  if (c.is_for(kClassifier)) {
    c.without({"use_weighted_layer_sum"});
    model.kind = ModelKind::encoder;
    model.head_hidden = c.size("classifier_proj_size", 256);
    model.head_activation = HeadActivation::none;
    model.classes = c.classes();
    model.labels = c.labels();
  }
  LayerConfig layer{.preset = "softmax"};
  layer.options = {{"heads", std::to_string(c.size("encoder_attention_heads"))},
                   {"position", "none"},
                   {"bias", "true"},
                   {"output_bias", "true"},
                   {"causal", "false"}};
  model.layers.assign(std::size_t(c.layers("encoder_layers")), layer);
  return model;
}

void weights(const ForeignConfig& c, WeightTable& table) {
  const WeightTable::Scope all = table.in("", place_of_encoder(c));
  all.linear("convolutions.0", "conv1", true);
  all.linear("convolutions.1", "conv2", true);
  all.take("positions.weight", "embed_positions.weight");
  all.linear("norm", "layer_norm", true);
  for (Index i = 0; i < c.layers("encoder_layers"); ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    const WeightTable::Scope layer = all.in(at, at);
    const WeightTable::Scope mixer = layer.in("mixer.", "self_attn.");
    mixer.linear("q", "q_proj", true);
    mixer.linear("k", "k_proj");
    // Softmax does not see it.
    mixer.know("k.bias", std::vector<double>(std::size_t(c.size("d_model"))));
    mixer.linear("v", "v_proj", true);
    mixer.linear("o", "out_proj", true);
    layer.linear("norm1", "self_attn_layer_norm", true);
    layer.linear("norm2", "final_layer_norm", true);
    layer.linear("mlp.up", "fc1", true);
    layer.linear("mlp.down", "fc2", true);
  }
  if (c.is_for(kClassifier)) {
    table.in("", "").linear("head_hidden", "projector", true);
    table.in("", "").linear("head", "classifier", true);
  } else if (c.model_class() != "WhisperEncoder") {
    table.leave_part("the decoder", c.is_for("Model") ? "decoder." : "model.decoder.");
    table.leave("proj_out.weight");
  }
}
}  // namespace

extern const Architecture whisper{.name = "whisper", .types = {"whisper"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

// RecurrentGemma (Griffin): gated linear recurrences and attention in a window by turns, norms with weights 1 + w, GEGLU with
// biases, an embedding times the root of the width, soft caps of the logits.
#include <algorithm>
#include <cmath>

#include "isomer/base/bf16.h"
#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
bool attends(const ForeignConfig& c, Index layer) {
  const Json* kinds = c.find("block_types");
  const Index period = kinds == nullptr ? 3 : kinds->is_array() ? std::max<Index>(1, Index(kinds->items().size())) : 1;
  // The list is taken again and again.
  return c.text_at("block_types", layer % period, {"recurrent", "attention"}, layer % 3 == 2 ? 1 : 0) == "attention";
}

Settings attention(const ForeignConfig& c) {
  const Index heads = c.size("num_attention_heads", 10), head = c.size("head_dim", c.size("hidden_size") / heads);
  Settings options{{"heads", std::to_string(heads)},
                   {"key", std::to_string(head)},
                   {"value", std::to_string(head)},
                   {"kv_heads", std::to_string(c.size("num_key_value_heads", heads))},
                   {"window", std::to_string(c.size("attention_window_size", 2048))},
                   {"output_bias", "true"}};
  if (c.flag("attention_bias", false)) options["bias"] = "true";
  rope_options(c, options, 0, 0.5);
  return options;
}

ModelConfig model(const ForeignConfig& c) {
  c.one_of("hidden_activation", {"gelu_pytorch_tanh"}, "gelu_pytorch_tanh");
  const Index width = c.size("hidden_size");
  // The factor is kept as BF16 there.
  const double scale = double(to_float(to_bf16(float(std::sqrt(double(width))))));
  ModelConfig model{.width = width,
                    .mlp = MlpKind::geglu,
                    .mlp_hidden = c.size("intermediate_size") / 2,
                    .mlp_bias = true,
                    .norm_eps = c.number("rms_norm_eps", 1e-6),
                    .tied = c.flag("tie_word_embeddings", true),
                    .logit_cap = c.number("logits_soft_cap", 30),
                    .embedding_scale = c.flag("embeddings_scale_by_sqrt_dim", true) ? scale : 1,
                    .vocabulary = c.size("vocab_size")};
  const Settings recurrent{{"inner", std::to_string(c.size("lru_width", width))},
                           {"heads", std::to_string(c.size("num_attention_heads", 10))},
                           {"conv", std::to_string(c.size("conv1d_width", 4))}};
  for (Index layer = 0; layer < c.layers(); ++layer)
    model.layers.push_back(attends(c, layer) ? LayerConfig{"sliding-window", attention(c)} : LayerConfig{"rg-lru", recurrent});
  return model;
}

void recurrence(const ForeignConfig& c, const WeightTable::Scope& mixer) {
  const Index heads = c.size("num_attention_heads", 10), size = c.size("lru_width", c.size("hidden_size")) / heads;
  mixer.linear("u", "linear_x", true);
  mixer.linear("gate", "linear_y", true);
  mixer.linear("o", "linear_out", true);
  mixer.linear("conv", "conv_1d", true);
  const WeightTable::Scope unit = mixer.in("", "rg_lru.");
  unit.take("rate", "recurrent_param").reshaped();
  unit.take("input_gate.weight", "input_gate_weight").reshaped().at(numbers_turned(heads, size, size));
  unit.take("input_gate.bias", "input_gate_bias");
  unit.take("recurrence_gate.weight", "recurrent_gate_weight").reshaped().at(numbers_turned(heads, size, size));
  unit.take("recurrence_gate.bias", "recurrent_gate_bias");
}

void weights(const ForeignConfig& c, WeightTable& table) {
  const Frame frame{.norm = "final_norm", .norm_plus = 1, .tied = c.flag("tie_word_embeddings", true)};
  frame_weights(c, table, frame, [&](const WeightTable::Scope& layer, Index i) {
    const WeightTable::Scope mixer = layer.in("mixer.", "temporal_block.");
    layer.take("norm1.weight", "temporal_pre_norm.weight").plus(1);
    layer.take("norm2.weight", "channel_pre_norm.weight").plus(1);
    if (attends(c, i)) {
      projections(mixer, {"q", "k", "v"}, c.flag("attention_bias", false));
      mixer.linear("o", "o_proj", true);
    } else {
      recurrence(c, mixer);
    }
    mlp_weights(layer, "mlp_block.", true);
  });
}
}  // namespace

extern const Architecture recurrent_gemma{
    .name = "recurrent_gemma", .types = {"recurrent_gemma"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

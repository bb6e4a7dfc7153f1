// RWKV-7 as flash-linear-attention writes it. (Its norm of the removal keys adds 1e-6 under the root; ours is exact.)
#include <algorithm>

#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
using Scope = WeightTable::Scope;

/// Values may be wider than keys, by as much in every layer.
Index value_width(const ForeignConfig& c) {
  const Json* all = c.find("value_dim");
  if (all == nullptr) return c.size("hidden_size");
  if (!all->is_array()) return c.size("value_dim");
  const std::vector<Json>& each = all->items();
  if (each.empty() || !std::ranges::all_of(each, [&](const Json& one) { return one == each[0]; }))
    c.fail("value_dim: expected one size for all layers, got " + all->dump().substr(0, 80));
  const Json one = Json::object({{"model_type", c.type()}, {"value_dim", each[0]}});
  return ForeignConfig(one.dump(), c.name()).size("value_dim");
}

Settings mixer(const ForeignConfig& c) {
  const Index width = c.size("hidden_size"), values = value_width(c);
  const Index key = c.has("head_dim") || !c.has("num_heads") ? c.size("head_dim", 64) : width / c.size("num_heads");
  if (key < 1 || width % key != 0) c.fail("head_dim: expected a number that divides hidden_size, got " + std::to_string(key));
  const Index H = width / key;
  if (values % H != 0) c.fail("value_dim: expected a multiple of " + std::to_string(H) + " heads, got " + std::to_string(values));
  return {{"heads", std::to_string(H)},
          {"key", std::to_string(key)},
          {"value", std::to_string(values / H)},
          {"norm_eps", text_of_option(double(key) * c.number("norm_eps", 1e-5))},
          {"decay_rank", std::to_string(c.size("decay_low_rank_dim", 64))},
          {"rate_rank", std::to_string(c.size("a_low_rank_dim", 64))},
          {"mix_rank", std::to_string(c.size("v_low_rank_dim", 16))},
          {"gate_rank", std::to_string(c.size("gate_low_rank_dim", 128))}};
}

/// As the package has it: rounded up to a multiple of 32.
Index hidden(const ForeignConfig& c) {
  if (c.has("intermediate_size")) return c.size("intermediate_size");
  const double size = double(c.size("hidden_size")) * c.number("hidden_ratio", 4);
  if (!(size >= 1 && size <= 0x1p30)) c.fail("hidden_ratio: expected a number that gives an MLP, got " + text_of_option(size));
  return (Index(size) + 31) / 32 * 32;
}

ModelConfig model(const ForeignConfig& c) {
  c.one_of("hidden_act", {"sqrelu"}, "sqrelu");
  c.without({"attn"});
  if (!c.flag("norm_bias", true)) c.fail("norm_bias: expected true, which is all that is supported, got false");
  ModelConfig model{.width = c.size("hidden_size"),
                    .mlp = MlpKind::channel_mix,
                    .mlp_hidden = hidden(c),
                    .norm = Norm::layer,
                    .norm_eps = c.number("norm_eps", 1e-5),
                    .tied = c.flag("tie_word_embeddings", false),
                    .front_norm = c.flag("norm_first", true),
                    .vocabulary = c.size("vocab_size")};
  model.layers.assign(std::size_t(c.layers()), {.preset = "rwkv7", .options = mixer(c)});
  return model;
}

void low_rank(const Scope& mixer, const std::string& ours, const std::string& theirs, bool bias) {
  mixer.linear(ours + "_down", theirs + "_lora.lora.0");
  mixer.linear(ours, theirs + "_lora.lora.2", bias);
}

void mixer_weights(const Scope& mixer, bool first) {
  projections(mixer, {"r", "k", "v", "o"});
  for (const std::string part : {"r", "w", "k", "v", "a", "g"}) mixer.take("mu_" + part, "x_" + part).reshaped();
  for (const char* part : {"k_k", "k_a"}) mixer.take(part, part).reshaped();
  mixer.take("r_k.weight", "r_k").reshaped();
  low_rank(mixer, "w", "w", true);
  low_rank(mixer, "rate", "a", true);
  low_rank(mixer, "g", "g", false);
  if (!first) low_rank(mixer, "mix", "v", true);
  for (const std::string part : {"weight", "bias"}) mixer.take("norm." + part, "g_norm." + part).reshaped();
}

void weights(const ForeignConfig& c, WeightTable& table) {
  const Frame frame{.embedding = "embeddings", .tied = c.flag("tie_word_embeddings", false), .norm_bias = true};
  frame_weights(c, table, frame, [&](const Scope& layer, Index number) {
    if (number == 0 && c.flag("norm_first", true)) table.in("", "").linear("front_norm", layer.theirs + "pre_norm", true);
    layer.linear("norm1", "attn_norm", true);
    layer.linear("norm2", "ffn_norm", true);
    mixer_weights(layer.in("mixer.", "attn."), number == 0);
    const Scope mlp = layer.in("mlp.", "ffn.");
    mlp.take("mix", "x_k");
    mlp.linear("up", "key");
    mlp.linear("down", "value");
  });
}
}  // namespace

extern const Architecture rwkv7{.name = "rwkv7", .types = {"rwkv7"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

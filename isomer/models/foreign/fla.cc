// Language models of flash-linear-attention, as its save_pretrained writes them: one frame around a mixer and a gated MLP, and
// for each mixer what its config means and how its weights are called.
#include <array>
#include <cmath>

#include "isomer/models/foreign/architecture.h"

namespace isomer::foreign {

namespace {
using Scope = WeightTable::Scope;

/// Some keys have a size as a factor of another.
Index product(const ForeignConfig& c, const char* key, double fallback, Index of) {
  const double size = c.number(key, fallback) * double(of);
  if (size < 1 || size > double(1 << 30) || size != std::floor(size))
    c.fail(std::string(key) + ": expected a factor of " + std::to_string(of) + " that gives a whole number");
  return Index(size);
}

/// Refuses a switch that is off.
void with(const ForeignConfig& c, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (!c.flag(key, true)) c.fail(std::string(key) + ": expected true, which is all that is supported, got false");
}

Settings heads_of(const ForeignConfig& c, Index heads, Index key, Index value) {
  return {{"heads", std::to_string(heads)},
          {"key", std::to_string(key)},
          {"value", std::to_string(value)},
          {"norm_eps", text_of_option(c.number("norm_eps", 1e-6))}};
}

/// Heads that share the factors expand_k and expand_v of the width.
Settings shared_heads(const ForeignConfig& c, Index heads, double expand_k, double expand_v) {
  const Index width = c.size("hidden_size"), H = c.size("num_heads", heads);
  if (c.size("num_kv_heads", H) != H) c.fail("num_kv_heads: expected as many as num_heads, which is all that is supported");
  const Index key = product(c, "expand_k", expand_k, width), value = product(c, "expand_v", expand_v, width);
  if (key % H != 0 || value % H != 0)
    c.fail("num_heads: expected a number that divides keys and values, got " + std::to_string(H));
  return heads_of(c, H, key / H, value / H);
}

/// Heads of head_dim, with values expand_v times as large.
Settings own_heads(const ForeignConfig& c, Index heads, Index size, double expand_v) {
  const Index key = c.size("head_dim", size);
  return heads_of(c, c.size("num_heads", heads), key, product(c, "expand_v", expand_v, key));
}

std::string conv_of(const ForeignConfig& c, bool usual) {
  return c.flag("use_short_conv", usual) ? std::to_string(c.size("conv_size", 4)) : "0";
}

void convolutions(const ForeignConfig& c, const Scope& mixer, bool usual) {
  if (!c.flag("use_short_conv", usual)) return;
  for (const std::string part : {"q", "k", "v"}) mixer.linear(part + "_conv", part + "_conv1d");
}

// gla

Settings gla_options(const ForeignConfig& c) {
  c.without({"feature_map", "clamp_min", "use_gv"});
  with(c, {"use_output_gate", "elementwise_affine", "use_gk"});
  Settings options = shared_heads(c, 4, 0.5, 1);
  options["conv"] = conv_of(c, false);
  return options;
}

/// The norm has another name where it is not one kernel with the gate.
void gated_norm(const Scope& mixer) { mixer.take_either("norm.weight", "g_norm_swish_gate.weight", "g_norm.weight"); }

void gla_weights(const ForeignConfig& c, const Scope& mixer) {
  projections(mixer, {"q", "k", "v", "o"});
  convolutions(c, mixer, false);
  mixer.linear("gate", "g_proj");
  mixer.linear("decay_down", "gk_proj.0");
  mixer.linear("decay", "gk_proj.1", true);
  gated_norm(mixer);
}

// retnet

Settings retnet_options(const ForeignConfig& c) {
  c.without({"feature_map", "use_short_conv"});
  with(c, {"use_output_gate", "elementwise_affine"});
  Settings options = shared_heads(c, 8, 1, 2);
  options["norm"] = "rms";
  options["norm_weight"] = "true";
  return options;
}

void retnet_weights(const ForeignConfig& c, const Scope& mixer) {
  std::vector<double> decays;
  for (Index h = 0; h < c.size("num_heads", 8); ++h) decays.push_back(std::log1p(-std::exp2(-5.0 - double(h))));
  mixer.know("log_decay", decays);
  projections(mixer, {"q", "k", "v", "o"});
  mixer.linear("gate", "g_proj");
  gated_norm(mixer);
}

// hgrn2

Settings hgrn2_options(const ForeignConfig& c) {
  c.without({"use_short_conv"});
  with(c, {"use_lower_bound", "elementwise_affine"});
  const Index width = c.size("hidden_size");
  const Index key = c.has("expand_ratio") || !c.has("num_heads") ? c.size("expand_ratio", 128) : width / c.size("num_heads");
  if (width % key != 0) c.fail("expand_ratio: expected a number that divides hidden_size, got " + std::to_string(key));
  Settings options = heads_of(c, width / key, key, key);
  // Its kernel of norm and projection is called without the config's.
  options["norm_eps"] = "1e-05";
  return options;
}

void hgrn2_weights(const ForeignConfig&, const Scope& mixer) {
  projections(mixer, {"q", "f", "o"});
  mixer.linear("v", "i_proj");
  mixer.take("norm.weight", "g_norm.weight").reshaped();
}

// delta_net

Settings delta_options(const ForeignConfig& c) {
  c.one_of("qk_norm", {"l2"}, "l2");
  c.one_of("qk_activation", {"silu"}, "silu");
  with(c, {"use_beta"});
  Settings options = shared_heads(c, 16, 1, 1);
  options["conv"] = conv_of(c, true);
  options["gate"] = c.flag("use_gate", false) ? "true" : "false";
  options["negative"] = c.flag("allow_neg_eigval", false) ? "true" : "false";
  return options;
}

void delta_weights(const ForeignConfig& c, const Scope& mixer) {
  projections(mixer, {"q", "k", "v", "o"});
  convolutions(c, mixer, true);
  mixer.linear("beta", "b_proj");
  if (c.flag("use_gate", false)) mixer.linear("gate", "g_proj");
  mixer.linear("norm", "o_norm");
}

// gated_deltanet

Settings gated_delta_options(const ForeignConfig& c) {
  c.one_of("output_gate_activation", {"swish", "silu"}, "swish");
  with(c, {"use_gate"});
  Settings options = own_heads(c, 6, 256, 2);
  options["value_heads"] = std::to_string(c.size("num_v_heads", c.size("num_heads", 6)));
  options["conv"] = conv_of(c, true);
  options["negative"] = c.flag("allow_neg_eigval", false) ? "true" : "false";
  return options;
}

void gated_delta_weights(const ForeignConfig& c, const Scope& mixer) {
  projections(mixer, {"q", "k", "v", "o"});
  convolutions(c, mixer, true);
  mixer.linear("beta", "b_proj");
  mixer.linear("gate", "g_proj");
  mixer.linear("step", "a_proj");
  mixer.take("step.bias", "dt_bias");
  mixer.take("a_log", "A_log").reshaped();
  mixer.linear("norm", "o_norm");
}

// kda

Settings kda_options(const ForeignConfig& c) {
  c.without({"safe_gate", "lower_bound"});
  const Index heads = c.size("num_heads", 16);
  if (c.size("num_v_heads", heads) != heads) c.fail("num_v_heads: expected as many as num_heads, which is all that is supported");
  Settings options = own_heads(c, 16, 128, 1);
  options["conv"] = conv_of(c, true);
  options["negative"] = c.flag("allow_neg_eigval", false) ? "true" : "false";
  return options;
}

void kda_weights(const ForeignConfig& c, const Scope& mixer) {
  projections(mixer, {"q", "k", "v", "o"});
  convolutions(c, mixer, true);
  mixer.linear("beta", "b_proj");
  mixer.linear("step_down", "f_proj.0");
  mixer.linear("step", "f_proj.1");
  mixer.take("step.bias", "dt_bias");
  mixer.take("a_log", "A_log").reshaped();
  mixer.linear("gate_down", "g_proj.0");
  mixer.linear("gate", "g_proj.1", true);
  mixer.linear("norm", "o_norm");
}

// The frame.

struct Kind {
  std::string_view type;
  const char* preset;
  Index ratio;  // of the MLP, where the config does not say
  Settings (*options)(const ForeignConfig& config);
  void (*weights)(const ForeignConfig& config, const Scope& mixer);
};
constexpr std::array<Kind, 6> kKinds{{{"delta_net", "deltanet", 4, delta_options, delta_weights},
                                      {"gated_deltanet", "gated-deltanet", 4, gated_delta_options, gated_delta_weights},
                                      {"gla", "gla", 4, gla_options, gla_weights},
                                      {"hgrn2", "hgrn2", 4, hgrn2_options, hgrn2_weights},
                                      {"kda", "kda", 4, kda_options, kda_weights},
                                      {"retnet", "retnet", 2, retnet_options, retnet_weights}}};

const Kind& kind_of(const ForeignConfig& c) {
  for (const Kind& kind : kKinds)
    if (kind.type == c.type()) return kind;
  c.fail("model_type: expected one of flash-linear-attention, got " + c.type());
}

/// As large as the package makes it: 2/3 ratio · width, rounded up to a multiple of 256.
Index hidden_of(const ForeignConfig& c) {
  if (c.has("intermediate_size")) return c.size("intermediate_size");
  const Index hidden = c.size("hidden_size") * c.size("hidden_ratio", kind_of(c).ratio) * 2 / 3;
  return (hidden + 255) / 256 * 256;
}

ModelConfig model(const ForeignConfig& c) {
  c.one_of("hidden_act", {"swish"}, "swish");
  c.without({"attn", "attnres_block_size"});
  ModelConfig model{.width = c.size("hidden_size"),
                    .mlp_hidden = hidden_of(c),
                    .norm_eps = c.number("norm_eps", 1e-6),
                    .tied = c.flag("tie_word_embeddings", false),
                    .vocabulary = c.size("vocab_size")};
  const Kind& kind = kind_of(c);
  model.layers.assign(std::size_t(c.layers()), {.preset = kind.preset, .options = kind.options(c)});
  return model;
}

void weights(const ForeignConfig& c, WeightTable& table) {
  const Frame frame{.embedding = "embeddings", .tied = c.flag("tie_word_embeddings", false)};
  frame_weights(c, table, frame, [&](const Scope& layer, Index) {
    layer.linear("norm1", "attn_norm");
    layer.linear("norm2", "mlp_norm");
    kind_of(c).weights(c, layer.in("mixer.", "attn."));
    mlp_weights(layer);
  });
  if (c.type() == "hgrn2" && c.layers() > 1)
    table.in("", c.is_for("Model") ? "" : frame.base).take("shared.hgrn2.bounds", "lower_bounds");
  table.leave("rotary.inv_freq");
}
}  // namespace

extern const Architecture fla{
    .name = "fla", .types = {"delta_net", "gated_deltanet", "gla", "hgrn2", "kda", "retnet"}, .model = model, .weights = weights};

}  // namespace isomer::foreign

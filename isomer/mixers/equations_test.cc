// Equations and fingerprints.
#include "isomer/mixers/equations.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "isomer/mixers/fingerprint.h"
#include "isomer/mixers/preset.h"

namespace isomer {
namespace {

using Lines = std::vector<std::string>;

Lines lines(std::string_view preset, const Settings& settings = {}) {
  return equations(build_mixer(preset, {.width = 64}, settings));
}

TEST(Equations, AreReadable) {
  EXPECT_EQ(lines("softmax"), (Lines{"q = rope(x W_q)", "k = rope(x W_k)", "v = x W_v", "w_ts = exp(K^-1/2 q_t . k_s),   s <= t",
                                     "o_t = sum_s w_ts v_s / sum_s w_ts", "y = o W_o"}));
  EXPECT_EQ(lines("sliding-window", {{"window", "8"}, {"sinks", "2"}, {"position", "none"}})[3],
            "w_ts = exp(K^-1/2 q_t . k_s),   t - 8 < s <= t or s < 2");
  EXPECT_EQ(lines("metala").back(), "y = (silu(gate) * layer_norm(o + 0.5 tanh(0.5 ((q * k) W_augment * v)))) W_o");
  EXPECT_EQ(lines("softmax", {{"denominator", "clamp"}, {"position", "none"}}),
            (Lines{"q = x W_q", "k = x W_k", "v = [x W_v, 1]", "w_ts = exp(K^-1/2 q_t . k_s),   s <= t", "o_t = sum_s w_ts v_s",
                   "y = (o[0:16] / max(o[16:17], 1)) W_o"}));
  EXPECT_EQ(lines("taylor", {{"clamp", "5"}})[3], "w_ts = taylor2(min(K^-1/2 q_t . k_s, 5)),   s <= t");
  EXPECT_EQ(lines("linear-relu", {{"clamp", "5"}, {"denominator", "none"}}),
            (Lines{"q = [0.25 relu(x W_q), -1]", "k = [relu(x W_k), 1]", "v = x W_v",
                   "w_ts = taylor1(min(q_t . k_s, 4)),   s <= t", "o_t = sum_s w_ts v_s", "y = o W_o"}));
  const Lines local = lines("performer", {{"causal", "false"}, {"feature_eps", "1e-4"}, {"local_heads", "1"}, {"block", "8"}});
  EXPECT_TRUE(
      std::ranges::any_of(local, [](const std::string& line) { return line.ends_with("|floor(t / 8) - floor(s / 8)| <= 1"); }));
  EXPECT_TRUE(std::ranges::any_of(local, [](const std::string& line) { return line.find("- max_of_all(") != line.npos; }));
  EXPECT_EQ(local.back(), "y = [linear_o, o] W_o");
  EXPECT_EQ(std::ranges::count(lines("qlstm"), "u = conv4(x W_u) + b_conv"), 1);
  EXPECT_EQ(std::ranges::count(lines("mamba"), "u = silu(conv4(x W_u) + b_conv)"), 1);
  EXPECT_EQ(lines("lru")[7], "h = exp(log_decay + i angle) * h + (in + i in_imag)");
  EXPECT_EQ(lines("mlstm")[8], "o = K^-1/2 S' q / (max(|K^-1/2 n . q|, 1) + 1e-06)");
}

TEST(Equations, ExistForEveryPreset) {
  for (const Preset* preset : presets()) {
    const Lines all = equations(build_mixer(*preset, {.width = 64}));
    EXPECT_TRUE(all.back().starts_with("y = ")) << preset->name;
    for (const std::string& line : all) {
      EXPECT_EQ(std::count(line.begin(), line.end(), '('), std::count(line.begin(), line.end(), ')')) << line;
      EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; })) << line;
    }
  }
}

TEST(Equations, NameWhatLayersHaveInCommon) {
  const std::vector<std::string> lines = equations(build_mixer("hgrn2", {.width = 64, .layer = 2, .layers = 4}));
  EXPECT_EQ(std::ranges::count(lines, "lb = sum[1:3](softmax_rows(w_bounds))"), 1);
  const std::vector<std::string> later = equations(build_mixer("rwkv7", {.width = 64, .layer = 2, .layers = 4, .before = 1}));
  EXPECT_EQ(std::ranges::count(later, "v = xv W_v + sigmoid(mix) * (first_layer(v) - xv W_v)"), 1);
}

TEST(Fingerprint, DependsOnWhatRuns) {
  const auto of = [](std::string_view preset, const Settings& settings = {}, const Place& place = {.width = 64}) {
    return graph::fingerprint(build_mixer(preset, place, settings));
  };
  EXPECT_EQ(of("gla"), of("gla"));
  EXPECT_EQ(of("gla").size(), std::string("gla-").size() + 16);
  EXPECT_NE(of("gla"), of("gla", {{"heads", "2"}}));
  EXPECT_NE(of("gla"), of("gla", {{"gate_power", "8"}}));
  EXPECT_NE(of("gla"), of("gla", {}, {.width = 128}));
  EXPECT_NE(of("softmax"), of("softmax-norm"));
  EXPECT_NE(of("softmax", {{"clamp", "5"}}), of("softmax", {{"clamp", "4"}}));
  EXPECT_EQ(of("softmax", {{"clamp", "inf"}}), of("softmax"));
  EXPECT_EQ(graph::dump(build_mixer("softmax", {.width = 64})).find("clamp"), std::string::npos)
      << "saved models from before there was a clamp are the same";
  // How parameters start is another matter: RWKV-6 starts differently in each layer.
  EXPECT_EQ(of("rwkv6"), of("rwkv6", {}, {.width = 64, .layer = 2, .layers = 4}));
  // Not so where a layer has something from another.
  const Place second{.width = 64, .layer = 1, .layers = 2, .before = 1};
  EXPECT_EQ(of("rwkv6"), of("rwkv6", {}, second));
  EXPECT_NE(of("rwkv7"), of("rwkv7", {}, second));
  EXPECT_NE(of("hgrn2"), of("hgrn2", {}, second));
  // Without options that say so, too.
  graph::Graph graph = build_mixer("linear-elu", {.width = 64});
  const std::string before = graph::fingerprint(graph);
  for (graph::Node& node : graph.nodes)
    if (auto* map = std::get_if<graph::Map>(&node.work)) map->function = Unary::relu;
  EXPECT_NE(graph::fingerprint(graph), before);
}

}  // namespace
}  // namespace isomer

// Costs against formulas by hand.
#include "isomer/mixers/cost.h"

#include <gtest/gtest.h>

#include "isomer/mixers/builder.h"
#include "isomer/mixers/parts.h"

namespace isomer {
namespace {

Cost cost(std::string_view preset, Index width, const Settings& settings = {}, Index T = 1000) {
  return cost_of(build_mixer(preset, {.width = width}, settings), T);
}

TEST(Cost, CountsParameters) {
  for (const Index d : {64, 256}) {
    const Index H = 4, head = d / H;
    EXPECT_EQ(cost("softmax", d).parameters, 4 * d * d);
    EXPECT_EQ(cost("softmax", d, {{"kv_heads", "2"}}).parameters, 3 * d * d);
    EXPECT_EQ(cost("softmax-norm", d).parameters, 4 * d * d);
    EXPECT_EQ(cost("softmax-gate", d).parameters, 4 * d * d + H * (d + 1));
    EXPECT_EQ(cost("fox", d).parameters, 4 * d * d + H * (d + 1));
    EXPECT_EQ(cost("retnet", d).parameters, 8 * d * d);
    // 24 d of the low-rank decay, its bias, and the norm of a head.
    EXPECT_EQ(cost("gla", d).parameters, 4 * d * d + 24 * d + d / 2 + head);
    EXPECT_EQ(cost("metala", d).parameters, 4 * d * d + 4 * d + d + d / 2);
    EXPECT_EQ(cost("metala", d, {{"conv", "0"}, {"augment", "false"}}).parameters, 4 * d * d + d);
    EXPECT_EQ(cost("metala", d, {{"with_key", "true"}}).parameters, 4 * d * d + d * d / 2 + 4 * d + d + d / 2);
    EXPECT_EQ(cost("hgrn2", d).parameters, 4 * d * d + d);
    EXPECT_EQ(cost("mlstm", d).parameters, 4 * d * d + 2 * H * (d + 1) + d);
    EXPECT_EQ(cost("deltanet", d).parameters, 4 * d * d + 3 * 4 * d + H * d + head);
    EXPECT_EQ(cost("luna", d).parameters, 4 * d * d + 8 * (head + 1) + 4 * 193);
    EXPECT_EQ(cost("luna", d, {{"psi", "shared"}}).parameters, 4 * d * d + 8 * (head + 1) + 128 + 65 * 4);
    EXPECT_EQ(cost("hedgehog", d).parameters, 4 * d * d + 2 * H * head * (head + 1));
    EXPECT_EQ(cost("hedgehog", d, {{"shared", "true"}}).parameters, 4 * d * d + H * head * (head + 1));
    EXPECT_EQ(cost("performer", d).parameters, 4 * d * d);
    EXPECT_EQ(cost("inline", d, {{"residual", "none"}}).parameters, 4 * d * (d + 1));
    const Settings image{{"causal", "false"}, {"residual", "image"}, {"rows", "4"}, {"columns", "4"}};
    EXPECT_EQ(cost("inline", d, image).parameters, 4 * d * (d + 1) + d * d / H + 9 * d * d / H + 10 * d);
    const Index C = 2 * d, rank = d / 16, N = 16;
    EXPECT_EQ(cost("mamba", d).parameters, 2 * d * C + 5 * C + C * rank + rank * C + C + 2 * C * N + C * N + C + C * d);
    EXPECT_EQ(cost("softmax", d, {{"position", "learned"}, {"position_length", "100"}}).parameters, 4 * d * d + 100 * d);
  }
}

TEST(Cost, CountsStates) {
  EXPECT_EQ(cost("softmax", 64).state_per_token, 128);
  EXPECT_EQ(cost("softmax", 64).state_floats, 0);
  EXPECT_EQ(cost("softmax", 64, {{"kv_heads", "1"}}).state_per_token, 32);
  EXPECT_EQ(cost("fox", 64).state_per_token, 128 + 4);
  EXPECT_EQ(cost("sliding-window", 64, {{"window", "10"}, {"sinks", "2"}}).state_floats, 12 * 128);
  EXPECT_EQ(cost("linear-elu", 64).state_floats, 4 * (16 * 16 + 16));
  EXPECT_EQ(cost("mlstm", 64).state_floats, 4 * (8 * 16 + 8 + 1));
  EXPECT_EQ(cost("inline", 64, {{"residual", "none"}}).state_floats, 4 * (16 * 16 + 16 + 16) + 1);
  EXPECT_EQ(cost("gla", 64).state_floats, 4 * 8 * 16);
  EXPECT_EQ(cost("metala", 64).state_floats, 4 * 8 * 16 + 3 * 64);
  EXPECT_EQ(cost("mamba", 64).state_floats, 128 * 16 + 3 * 128);
  EXPECT_EQ(cost("lru", 64).state_floats, 2 * 64);
  EXPECT_EQ(cost("rwkv7", 64).state_floats, 4 * 16 * 16 + 64);
  EXPECT_EQ(cost("based", 64).state_floats, 4 * (153 * 16 + 153));
}

TEST(Cost, CountsFlops) {
  const double d = 64;
  // Four projections, 2 (K + V) for every visible pair of each head, 13 for every rotated number.
  EXPECT_EQ(cost("softmax", 64, {}, 99).flops_per_token, 8 * d * d + 50 * 4 * d + 2 * 13 * d);
  EXPECT_EQ(cost("softmax", 64, {{"causal", "false"}}, 99).flops_per_token, 8 * d * d + 99 * 4 * d + 2 * 13 * d);
  EXPECT_EQ(cost("softmax", 64, {}, 99).law_flops, 50 * 4 * d);
  // Windows of 1, 2, 3, 3, … tokens.
  EXPECT_EQ(cost("sliding-window", 64, {{"window", "3"}, {"position", "none"}}, 4).flops_per_token, 8 * d * d + 9.0 / 4 * 4 * d);
  // Attention grows with the sequence, the others do not.
  EXPECT_GT(cost("softmax", 64, {}, 4000).flops_per_token, cost("softmax", 64, {}, 2000).flops_per_token);
  for (const char* preset : {"linear-elu", "gla", "deltanet", "mamba", "lru"})
    EXPECT_EQ(cost(preset, 64, {}, 4000).flops_per_token, cost(preset, 64, {}, 2000).flops_per_token) << preset;
}

TEST(Cost, KnowsTheStateDimension) {
  const auto of = [](std::string_view preset) { return state_dimension(build_mixer(preset, {.width = 64})); };
  EXPECT_TRUE(of("softmax").grows);
  EXPECT_EQ(of("sliding-window").features, 128);
  EXPECT_EQ(of("gla").features * of("gla").channels, 8 * 64);
  EXPECT_EQ(of("mamba").features * of("mamba").channels, 16 * 128);
  EXPECT_EQ(of("lru").channels, 64);
}

// What CONTRIBUTING shows: a mechanism in one short function.
void build_leaky(Builder& m) {
  const auto [H, K, V] = m.head_sizes({});
  const double rate = m.number("rate", 0.1, "decay of each token");
  const Value q = parts::project(m, "q", H, K), k = parts::project(m, "k", H, K), v = parts::project(m, "v", H, V);
  const Value decay = m.parameter("decay", H, 1, graph::constant(-rate), graph::Training::fixed);
  parts::output(m, m.scalar_decay({.q = q, .k = k, .v = v, .log_decay = decay}));
}

TEST(Cost, OfAPresetThatIsWrittenHere) {
  const Preset leaky{.name = "leaky", .source = "nobody", .summary = "linear attention that leaks", .build = build_leaky};
  const graph::Graph graph = build_mixer(leaky, {.width = 32}, {{"heads", "2"}, {"rate", "0.5"}});
  EXPECT_EQ(graph.law, "scalar_decay");
  EXPECT_EQ(cost_of(graph, 512).parameters, 4 * 32 * 32);
  EXPECT_EQ(cost_of(graph, 512).state_floats, 2 * 16 * 16);
  EXPECT_EQ(options_of(leaky, {.width = 32}).size(), 4u);
}

}  // namespace
}  // namespace isomer

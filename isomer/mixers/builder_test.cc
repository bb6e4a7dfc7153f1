// What the builder refuses and how it says so, and a preset that is written here.
#include "isomer/mixers/builder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/mixers/fingerprint.h"
#include "isomer/mixers/parts.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

std::string error_of(std::string_view preset, const Settings& settings, Index width = 64) {
  return tests::error_of([&] { (void)build_mixer(preset, {.width = width}, settings); });
}

TEST(Builder, NamesTheNearestPresetAndOption) {
  EXPECT_EQ(error_of("glaa", {}), "unknown preset glaa, did you mean gla?");
  EXPECT_EQ(error_of("gla", {{"haeds", "4"}}), "gla: unknown option haeds, did you mean heads?");
  EXPECT_EQ(error_of("mamba", {{"positions", "none"}}), "mamba: unknown option positions, did you mean position?");
}

TEST(Builder, SaysWhichValuesItExpected) {
  EXPECT_EQ(error_of("gla", {{"heads", "four"}}), "heads: expected a whole number from 1 to 1048576, got four");
  EXPECT_EQ(error_of("gla", {{"heads", "0"}}), "heads: expected a whole number from 1 to 1048576, got 0");
  EXPECT_EQ(error_of("gla", {{"heads", "9999999"}}), "heads: expected a whole number from 1 to 1048576, got 9999999");
  EXPECT_EQ(error_of("gla", {{"gate_power", "much"}}), "gate_power: expected a finite number, got much");
  EXPECT_EQ(error_of("softmax", {{"clamp", "-inf"}}), "clamp: expected a number or inf, got -inf");
  EXPECT_EQ(error_of("fox", {{"clamp", "nan"}}), "clamp: expected a number or inf, got nan");
  EXPECT_EQ(error_of("linear-relu", {{"clamp", "0"}}), "clamp: expected a positive number, got 0");
  EXPECT_EQ(error_of("softmax", {{"bias", "yes"}}), "bias: expected true or false, got yes");
  EXPECT_EQ(error_of("gla", {{"position", "absolute"}}),
            "position: expected none, learned, rope or selective-rope, got absolute");
  EXPECT_EQ(error_of("gla", {}, 0), "gla: expected a width from 1 to 1048576, got 0");
  EXPECT_THROW((void)build_mixer("gla", {.width = 64, .layer = 2, .layers = 2}), Error);
  EXPECT_EQ(tests::error_of([] { (void)build_mixer("gla", {.width = 64, .layer = 1, .layers = 2, .before = 2}); }),
            "gla: expected at most 1 of its preset before it, got 2");
}

TEST(Builder, HasTheBucketsOfT5) {
  const auto places = [](const Settings& settings) {
    Settings all = settings;
    all.emplace("distance_bias", "t5");
    const graph::Graph graph = build_mixer("softmax", {.width = 64}, all);
    for (const graph::Node& node : graph.nodes)
      if (const auto* gather = std::get_if<graph::Gather>(&node.work)) return gather->places;
    return std::vector<Index>{};
  };
  // As transformers' relative_position_bucket has them.
  const std::vector<Index> both = places({{"causal", "false"}});
  ASSERT_EQ(both.size(), 257U);
  const auto at = [&](Index distance) { return both[std::size_t(distance + 128)]; };
  for (const auto& [distance, bucket] : std::vector<std::pair<Index, Index>>{{0, 0},
                                                                             {-1, 1},
                                                                             {1, 17},
                                                                             {-7, 7},
                                                                             {7, 23},
                                                                             {-8, 8},
                                                                             {-11, 8},
                                                                             {-12, 9},
                                                                             {16, 26},
                                                                             {-31, 11},
                                                                             {-32, 12},
                                                                             {64, 30},
                                                                             {-90, 14},
                                                                             {91, 31},
                                                                             {-128, 15}})
    EXPECT_EQ(at(distance), bucket) << distance;
  EXPECT_EQ(places({{"buckets", "4"}, {"farthest", "8"}}), (std::vector<Index>{3, 3, 3, 3, 3, 2, 2, 1, 0}));
  EXPECT_EQ(error_of("taylor", {{"distance_bias", "t5"}}), "taylor: unknown option distance_bias");
  EXPECT_EQ(error_of("softmax", {{"distance_bias", "t5"}, {"farthest", "32"}}),
            "farthest: expected a number above buckets=32, got 32");
  EXPECT_EQ(error_of("softmax", {{"buckets", "8"}}), "softmax: option buckets has no effect without distance_bias=t5");
}

/// The gates of a small preset have this size.
template <Index size>
void build_with_gates(Builder& m) {
  const auto [H, K, V] = m.head_sizes({});
  const Value q = parts::project(m, "q", H, K), k = parts::project(m, "k", H, K), v = parts::project(m, "v", H, V);
  const Value gates = parts::project(m, "gates", H, size);
  if (size < K)
    parts::output(m, m.scalar_decay({.q = q, .k = k, .v = v, .log_decay = gates}));
  else
    parts::output(m, m.channel_decay({.q = q, .k = k, .v = v, .log_decay = gates}));
}

TEST(Builder, RefusesGatesOfAnotherSize) {
  const auto error = [](void (*build)(Builder&)) {
    const Preset preset{.name = "own", .source = "", .summary = "", .build = build};
    return tests::error_of([&] { (void)build_mixer(preset, {.width = 64}); });
  };
  EXPECT_EQ(error(&build_with_gates<1>), "no error");
  EXPECT_EQ(error(&build_with_gates<2>),
            "scalar_decay: expected log_decay for [B, T, H] = [1, 1, 4] or [H] = [4], got a value [1, 1, 4, 2]");
  EXPECT_EQ(error(&build_with_gates<16>), "no error");
  EXPECT_EQ(error(&build_with_gates<17>),
            "channel_decay: expected log_decay for [B, T, H, K] = [1, 1, 4, 16], got a value [1, 1, 4, 17]");
}

TEST(Builder, RefusesWhatMakesNoSense) {
  EXPECT_EQ(error_of("softmax", {{"heads", "3"}}),
            "softmax: expected heads that divide the key width of 64, got 3; heads=2 is the nearest below");
  EXPECT_EQ(error_of("softmax", {{"key", "7"}}), "softmax: position=rope needs an even key size, got 7; key=8 is the nearest");
  EXPECT_EQ(error_of("softmax", {{"key", "7"}, {"position", "none"}}), "no error");
  EXPECT_EQ(error_of("gated-deltanet", {{"value_heads", "6"}}),
            "gated-deltanet: expected value_heads that heads=4 divides, got 6");
  EXPECT_EQ(error_of("softmax", {{"latent", "8"}}),
            "softmax: latent needs position=none, kv_heads=heads and neither bias nor qk_norm");
  EXPECT_EQ(error_of("softmax", {{"position", "none"}, {"latent", "8"}, {"key", "4"}, {"common_key", "4"}}),
            "common_key: expected a number below key=4, got 4");
  EXPECT_EQ(error_of("softmax", {{"kv_heads", "3"}}), "softmax: expected kv_heads that divide heads=4, got 3");
  EXPECT_EQ(error_of("softmax", {{"causal", "false"}, {"decay", "true"}}), "softmax: decay=true needs causal=true");
  EXPECT_EQ(error_of("softmax", {{"rope_base", "500"}, {"position", "none"}}),
            "softmax: option rope_base has no effect without position=rope");
  EXPECT_EQ(error_of("gla", {{"phase_gate", "false"}}), "gla: option phase_gate has no effect without position=selective-rope");
  EXPECT_EQ(error_of("softmax", {{"floor", "1"}}), "softmax: option floor has no effect without denominator=clamp or detach");
  EXPECT_EQ(error_of("softmax", {{"position", "selective-rope"}, {"kv_heads", "2"}}),
            "softmax: position=selective-rope needs as many heads of keys as of queries, got 2 and 4");
  EXPECT_EQ(error_of("linear-elu", {{"causal", "false"}, {"denominator", "count"}}),
            "linear-elu: denominator=count needs causal=true; denominator=sum is the nearest that works");
  EXPECT_EQ(error_of("mlstm", {{"normaliser", "none"}}),
            "mlstm: normaliser=none overflows with exponential gates; the preset mlstm-sig is the nearest that works");
}

TEST(Builder, AnOptionSaysWhatThereIsToChoose) {
  for (const MixerOption& option : options_of(find_preset("gla"), {.width = 64})) {
    const bool chosen = option.name == "position";
    EXPECT_EQ(!option.choices.empty(), chosen || option.help.find(" | ") != std::string::npos) << option.name;
    if (chosen) {
      EXPECT_EQ(option.choices, (std::vector<std::string>{"none", "learned", "rope", "selective-rope"}));
    }
  }
}

TEST(Builder, OptionsAreResolvedInTheGraph) {
  const graph::Graph graph = build_mixer("gla", {.width = 64}, {{"heads", "2"}});
  const auto value = [&](std::string_view name) {
    for (const auto& [key, text] : graph.options)
      if (key == name) return text;
    return std::string("?");
  };
  EXPECT_EQ(value("heads"), "2");
  EXPECT_EQ(value("key"), "16");
  EXPECT_EQ(value("value"), "32");
  EXPECT_EQ(value("gate_power"), "16");
  EXPECT_EQ(graph.law, "channel_decay");
  EXPECT_TRUE(graph::causal(graph));
  EXPECT_FALSE(graph::causal(build_mixer("softmax", {.width = 64}, {{"causal", "false"}})));
  EXPECT_FALSE(graph::causal(build_mixer("linear-elu", {.width = 64}, {{"causal", "false"}})));
}

TEST(Builder, AGivenSizeHasTheDefaultThatItReplaces) {
  const std::vector<MixerOption> options = options_of(find_preset("gla"), {.width = 64}, {{"heads", "2"}, {"key", "8"}});
  const auto key = std::ranges::find(options, "key", &MixerOption::name);
  ASSERT_NE(key, options.end());
  EXPECT_EQ(key->fallback, "16");
  // Given or not, the default is no part of what identifies a mixer.
  EXPECT_EQ(graph::fingerprint(build_mixer("gla", {.width = 64}, {{"heads", "2"}, {"key", "16"}})),
            graph::fingerprint(build_mixer("gla", {.width = 64}, {{"heads", "2"}})));
}

TEST(Builder, KeepsOnlyWhatTheOutputNeeds) {
  const Preset wasteful{.name = "wasteful", .source = "", .summary = "", .build = [](Builder& m) {
                          const Value kept = m.linear("kept", m.x(), m.width());
                          (void)m.linear("dropped", kept, 5);
                          m.output(m.map(Unary::relu, kept));
                          (void)m.linear("late", kept, 7);
                        }};
  const graph::Graph graph = build_mixer(wasteful, {.width = 8});
  ASSERT_EQ(graph.nodes.size(), 3u);
  EXPECT_EQ(graph.nodes[1].parameters, "kept");
  EXPECT_EQ(graph.nodes[2].inputs, std::vector<int>{1});
  EXPECT_EQ(graph.nodes[2].name, "y");
}

}  // namespace
}  // namespace isomer

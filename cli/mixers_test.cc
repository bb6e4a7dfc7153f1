// list, show, bench --layers and bench --train.
#include <nlohmann/json.hpp>

#include "cli/testing.h"
#include "isomer/mixers/cost.h"
#include "isomer/mixers/preset.h"

namespace isomer {
namespace {

using nlohmann::json;

TEST_F(Cli, ListsEveryPresetWithItsCosts) {
  const Result result = run("list --width 128 --T 64 --json");
  ASSERT_EQ(result.status, 0) << result.err;
  const json rows = json::parse(result.out).at("rows");
  ASSERT_EQ(rows.size(), presets().size());
  for (const json& row : rows) {
    const Preset& preset = find_preset(row.at("preset").get<std::string>());
    const graph::Graph graph = build_mixer(preset, {.width = 128});
    const Cost cost = cost_of(graph, 64);
    EXPECT_EQ(row.at("law"), graph.law);
    EXPECT_EQ(row.at("source"), preset.source);
    EXPECT_EQ(row.at("parameters"), cost.parameters);
    EXPECT_EQ(row.at("flops_per_token"), cost.flops_per_token);
    EXPECT_EQ(row.at("state_floats"), cost.state_per_token > 0 ? cost.state_per_token : cost.state_floats);
  }
  const Result table = run("list");
  EXPECT_EQ(table.status, 0);
  for (const Preset* preset : presets())
    EXPECT_NE(table.out.find("\n" + std::string(preset->name) + " "), std::string::npos) << preset->name;
}

TEST_F(Cli, ListsWhatCannotBeBuiltAtAWidthWithTheReason) {
  const json rows = json::parse(run("list --width 100 --json").out).at("rows");
  ASSERT_EQ(rows.size(), presets().size());
  const auto gla = std::find_if(rows.begin(), rows.end(), [](const json& row) { return row.at("preset") == "gla"; });
  EXPECT_EQ(gla->at("problem"), "expected heads that divide the key width of 50, got 4; heads=2 is the nearest below");
}

TEST_F(Cli, TimesLayersAndWhatIsOutsideOfTheirKernels) {
  const Result result = run("bench --layers --quick --json --threads 1 --preset gla --preset softmax");
  ASSERT_EQ(result.status, 0) << result.err;
  const json rows = json::parse(result.out).at("rows");
  ASSERT_EQ(rows.size(), 4u);
  const graph::Graph gla = build_mixer("gla", {.width = 256});
  const json& row = rows.at(0);
  EXPECT_EQ(row.at("subject"), "gla");
  EXPECT_EQ(row.at("law"), "channel_decay");
  EXPECT_EQ(row.at("direction"), "forward");
  EXPECT_EQ(row.at("width"), 256);
  EXPECT_EQ(row.at("T"), 1024);
  EXPECT_EQ(row.at("H"), 4);
  EXPECT_EQ(row.at("state_bytes"), 4 * cost_of(gla, 1024).state_floats);
  for (const json& each : rows) {
    EXPECT_GT(each.at("us_per_token").get<double>(), 0.0);
    const double products = each.at("product_share"), law = each.at("law_share"), outside = each.at("outside_share");
    EXPECT_GT(std::min({products, law, outside}), 0.0);
    EXPECT_NEAR(products + law + outside, 1, 1e-9);
  }
  EXPECT_EQ(rows.at(3).at("direction"), "forward+backward");
  expect_wrong("bench --layers --preset glaa", "isomer bench: unknown preset glaa, did you mean gla?");
}

TEST_F(Cli, TimesStepsOfTraining) {
  const Result result = run("bench --train --quick --json --preset gla");
  ASSERT_EQ(result.status, 0) << result.err;
  const json rows = json::parse(result.out).at("rows");
  ASSERT_EQ(rows.size(), 1u);
  const json& row = rows.at(0);
  EXPECT_EQ(row.at("subject"), "gla");
  EXPECT_EQ(row.at("direction"), "train");
  EXPECT_EQ(row.at("B"), 2);
  EXPECT_EQ(row.at("T"), 512);
  // Flops are six for each trained number, and more for the law.
  const double per_token = row.at("gflops").get<double>() * row.at("us_per_token").get<double>() * 1e3;
  EXPECT_GT(per_token, 6 * row.at("parameters").get<double>());
  EXPECT_LT(per_token, 7 * row.at("parameters").get<double>());
  EXPECT_NEAR(row.at("tokens_per_s").get<double>() * row.at("us_per_token").get<double>(), 1e6, 1);
  EXPECT_GT(row.at("peak_share").get<double>(), 0.0);
  expect_wrong("bench --train --layers", "isomer bench: --layers excludes --train");
  expect_wrong("bench --law delta --layers", "isomer bench: --law excludes --layers");
  expect_wrong("bench --form chunk --train", "isomer bench: --form excludes --train");
  expect_wrong("bench --preset gla", "isomer bench: --preset: expected --layers or --train beside it");
}

TEST_F(Cli, ShowsAMixer) {
  const Result text = run("show gla --width 128 --set heads=2 --set position=rope --T 64");
  ASSERT_EQ(text.status, 0) << text.err;
  for (const char* part : {"Yang et al. 2023", "  heads ", "q = rope(x W_q)", "S = diag(exp(log_decay)) S + k v'",
                           "state dimension  4096 = 32 for each of 128", "parameters       68736", "one token"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;

  const json row = json::parse(run("show gla --width 128 --set heads=2 --T 2000 --json").out).at("rows").at(0);
  EXPECT_EQ(row.at("preset"), "gla");
  EXPECT_EQ(row.at("options").at(0),
            (json{{"name", "position"}, {"value", "none"}, {"default", "none"}, {"help", row.at("options").at(0).at("help")}}));
  EXPECT_EQ(row.at("forms").at(0).at("form"), "chunk");
  EXPECT_EQ(row.at("forms").at(2).at("form"), "step");
  EXPECT_EQ(row.at("dsf"), (json{{"features", 32}, {"channels", 128}, {"grows", false}}));
}

TEST_F(Cli, ShowsWhatALaterLayerHas) {
  const json first = json::parse(run("show rwkv7 --json").out).at("rows").at(0),
             later = json::parse(run("show rwkv7 --layer 2 --json").out).at("rows").at(0);
  EXPECT_EQ(later.at("parameters").get<Index>() - first.at("parameters").get<Index>(), 2 * 256 * 32 + 256);
  EXPECT_NE(run("show rwkv7 --layer 1").out.find("first_layer(v)"), std::string::npos);
  EXPECT_NE(run("show hgrn2 --layer 1").out.find("lb = sum[1:2](softmax_rows(w_bounds))"), std::string::npos);
  EXPECT_EQ(run("show rwkv7 --layer 1 --width 16 --dsf").status, 0);
}

TEST_F(Cli, ShowsAMixerAsADynamicalSystem) {
  const Result text = run("show retnet --width 16 --set heads=2 --dsf");
  ASSERT_EQ(text.status, 0) << text.err;
  // 1 - 2^-5 and 1 - 2^-6, keys of 8 and values of 16.
  for (const char* part : {"0.9688", "0.9844", "128", "effective attention matrix of scalar_decay, head 0"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;

  const json rows = json::parse(run("show softmax --width 16 --set heads=2 --dsf --T 5 --json").out).at("rows");
  ASSERT_EQ(rows.size(), 2);
  for (const json& row : rows) {
    EXPECT_EQ(row.at("state_dimension"), 5 * 8) << "a slot for each key";
    EXPECT_EQ(row.at("eigenvalue_size").at("high").size(), 5);
    ASSERT_EQ(row.at("matrix").size(), 5);
    for (const json& line : row.at("matrix")) {
      double sum = 0;
      for (const json& weight : line) sum += weight.get<double>();
      EXPECT_NEAR(sum, 1, 1e-12);
    }
  }
  expect_wrong("show gla --dsf --T 65", "isomer show: --dsf: expected --T from 1 to 64, got 65");
  expect_wrong("show softmax --dsf --set causal=false",
               "isomer show: --dsf: expected a causal mixer, got softmax of whole sequences");
}

TEST_F(Cli, ShowsEveryPreset) {
  for (const Preset* preset : presets()) {
    const Result result = run("show " + std::string(preset->name) + " --width 64 --T 100");
    EXPECT_EQ(result.status, 0) << preset->name << result.err;
    EXPECT_NE(result.out.find("\n  y = "), std::string::npos) << preset->name;
    EXPECT_EQ(run("show " + std::string(preset->name) + " --width 32 --dsf --T 6").status, 0) << preset->name;
  }
}

TEST_F(Cli, AnswersWrongRequestsForMixersInOneLine) {
  expect_wrong("show", "isomer show: expected a preset (isomer list has them), got none");
  expect_wrong("show glaa", "isomer show: unknown preset glaa, did you mean gla?");
  expect_wrong("show gla --set haeds=4", "isomer show: gla: unknown option haeds, did you mean heads?");
  expect_wrong("show gla --set heads", "isomer show: expected --set key=value, got heads");
  expect_wrong("show gla --width 0", "isomer show: --width: Value 0 not in range 1 to 1048576");
  expect_wrong("show gla --jsn", "isomer show: unknown option --jsn, did you mean --json?");
  expect_wrong("list gla", "isomer list: unexpected argument gla");
}

}  // namespace
}  // namespace isomer

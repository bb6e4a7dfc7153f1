// Every preset, with every option it names.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "isomer/base/error.h"
#include "isomer/mixers/preset.h"

namespace isomer {
namespace {

/// Empty if the mixer can be built.
std::string error_of(std::string_view preset, const Settings& settings, const Place& place = {.width = 64}) {
  try {
    const graph::Graph graph = build_mixer(preset, place, settings);
    EXPECT_EQ(graph.preset, preset);
    EXPECT_EQ(graph.nodes.back().heads, 1);
    EXPECT_EQ(graph.nodes.back().size, place.width);
    EXPECT_FALSE(graph.law.empty());
  } catch (const Error& problem) {
    return problem.what();
  }
  return "";
}

TEST(Presets, AreThoseOfTheTable) {
  const std::set<std::string_view> table{"softmax",
                                         "taylor",
                                         "softmax-norm",
                                         "softmax-gate",
                                         "softmax-count",
                                         "sliding-window",
                                         "fox",
                                         "linear-identity",
                                         "linear-relu",
                                         "linear-elu",
                                         "linear-exp",
                                         "linear-cosine",
                                         "linear-softmax",
                                         "cosformer",
                                         "performer",
                                         "rff",
                                         "based",
                                         "t2r",
                                         "hedgehog",
                                         "luna",
                                         "normalized",
                                         "inline",
                                         "retnet",
                                         "mamba2",
                                         "mlstm",
                                         "mlstm-sig",
                                         "gla",
                                         "hgrn2",
                                         "metala",
                                         "rwkv6",
                                         "deltanet",
                                         "gated-deltanet",
                                         "kda",
                                         "rwkv7",
                                         "s4d",
                                         "s5",
                                         "lru",
                                         "mamba",
                                         "rg-lru",
                                         "qlstm",
                                         "qlstm-reversed"};
  std::set<std::string_view> found;
  for (const Preset* preset : presets()) {
    found.insert(preset->name);
    EXPECT_FALSE(preset->source.empty() || preset->summary.empty()) << preset->name;
  }
  EXPECT_EQ(found, table);
  EXPECT_TRUE(std::is_sorted(presets().begin(), presets().end(), [](auto* a, auto* b) { return a->name < b->name; }));
}

TEST(Presets, AreBuiltAtAnyWidthThatTheirHeadsDivide) {
  for (const Preset* preset : presets()) {
    for (Index width : {16, 64, 96, 256})
      EXPECT_EQ(error_of(preset->name, {}, {.width = width}), "") << preset->name << " " << width;
    EXPECT_EQ(error_of(preset->name, {}, {.width = 64, .layer = 3, .layers = 4}), "") << preset->name;
  }
}

/// What an option has an effect with.
Settings beside(std::string_view preset, std::string_view option) {
  if (preset == "mamba2" && option.starts_with("rope_")) return {{"position", "rope"}, {"attention", "1"}};
  if (option.starts_with("attention_")) return {{"attention", "4"}};
  if (option == "buckets" || option == "farthest") return {{"distance_bias", "t5"}};
  if (option == "rope_base") return {{"position", "rope"}};
  if (option == "position_length") return {{"position", "learned"}};
  if (option.starts_with("phase_")) return {{"position", "selective-rope"}};
  if (option == "common_key") return {{"position", "none"}, {"latent", "8"}};
  if (option == "floor") return {{"denominator", "clamp"}};
  if (option == "denominator_eps") return {{"denominator", "detach"}};
  if (option == "norm_eps") return {{"norm", "rms"}};
  if (option == "qk_norm_eps") return preset == "fox" ? Settings{{"pro", "true"}} : Settings{{"qk_norm", "head"}};
  if (option == "norm_gain") return {{"norm", "rms"}};
  if (preset == "performer" && option == "block") return {{"causal", "false"}, {"local_heads", "1"}};
  if (option == "rows" || option == "columns")
    return {{"causal", "false"}, {"residual", "image"}, {"rows", "4"}, {"columns", "4"}};
  return {};
}

TEST(Presets, AcceptEveryOptionTheyName) {
  for (const Preset* preset : presets())
    for (const MixerOption& option : options_of(*preset, {.width = 64})) {
      EXPECT_FALSE(option.help.empty()) << preset->name << " " << option.name;
      Settings settings = preset->name == "fox" && option.name == "norm_eps" ? beside("fox", "qk_norm_eps")
                          : option.applies                                   ? Settings{}
                                                                             : beside(preset->name, option.name);
      settings.emplace(option.name, option.fallback);
      EXPECT_EQ(error_of(preset->name, settings), "") << preset->name << " " << option.name << "=" << option.fallback;
      if (option.fallback != "true" && option.fallback != "false") continue;
      settings[option.name] = option.fallback == "true" ? "false" : "true";
      // The one flag that asks for another denominator or residual.
      if (option.name == "causal" && preset->name == "inline") settings["residual"] = "none";
      if (option.name == "causal" && preset->name.starts_with("softmax-") && preset->name != "softmax-norm")
        settings["denominator"] = "sum";
      EXPECT_EQ(error_of(preset->name, settings), "") << preset->name << " " << option.name << "=" << settings[option.name];
    }
}

TEST(Presets, AcceptEveryChoiceOrSayWhatItNeeds) {
  for (const Preset* preset : presets())
    for (const MixerOption& option : options_of(*preset, {.width = 64}))
      for (const std::string& choice : option.choices) {
        Settings settings = beside(preset->name, option.name);
        settings[option.name] = choice;
        const std::string error = error_of(preset->name, settings);
        const bool says = error.find(" needs ") != std::string::npos || error.find(" overflows ") != std::string::npos;
        EXPECT_TRUE(error.empty() || (says && error.find("nearest") != std::string::npos) || choice == "image")
            << preset->name << " " << option.name << "=" << choice << ": " << error;
      }
}

struct Row {
  std::string_view name, preset;
  Settings settings;
};

TEST(Presets, HaveTheAblationsOfSoftmaxAsAnRnn) {
  // The rows of the authors' code (science P1.3), without those that are bugs.
  const std::vector<Row> rows{
      {"softmax", "softmax", {}},
      {"softmax_clamp_denom", "softmax", {{"clamp", "5"}, {"denominator", "clamp"}}},
      {"softmax_detach_denom", "softmax", {{"clamp", "5"}, {"denominator", "detach"}}},
      {"softmax_detach_denom_gate", "softmax", {{"clamp", "5"}, {"denominator", "detach"}, {"out_gate", "after"}}},
      {"softmax_divs", "softmax-count", {{"clamp", "5"}}},
      {"softmax_gate", "softmax-gate", {{"clamp", "5"}, {"denominator", "none"}}},
      {"softmax_divS_gate", "softmax-gate", {{"clamp", "5"}}},
      {"softmax_divS_norm", "softmax-count", {{"clamp", "5"}, {"norm", "rms"}}},
      {"gated_softmax", "softmax-count", {{"clamp", "5"}, {"in_gate", "true"}, {"out_gate", "before"}, {"norm", "layer"}}},
      {"gated_softmax_no_in_gate", "softmax-count", {{"clamp", "5"}, {"out_gate", "before"}, {"norm", "layer"}}},
      {"gated_softmax_no_out_gate", "softmax-count", {{"clamp", "5"}, {"in_gate", "true"}, {"norm", "layer"}}},
      {"gated_softmax_no_norm", "softmax-count", {{"clamp", "5"}, {"in_gate", "true"}, {"out_gate", "after"}}},
      {"gated_softmax_no_gate_L2norm_nodivS_noclamp", "softmax-norm", {}},
      {"out_gate_L2norm", "softmax-norm", {{"clamp", "5"}, {"out_gate", "before"}}},
      {"post_out_gate_L2norm", "softmax-norm", {{"clamp", "5"}, {"out_gate", "after"}}},
      {"customnorm", "softmax-norm", {{"clamp", "5"}, {"norm", "l2-size"}}},
      {"gated_relu_no_in_gate_no_norm", "linear-relu", {{"clamp", "5"}, {"denominator", "count"}, {"out_gate", "after"}}},
      {"gated_ReLU_no_gate_L2norm_nodivS_noclamp", "linear-relu", {{"denominator", "none"}, {"norm", "l2"}}},
      {"gated_softmax_cumgate", "softmax", {{"clamp", "5"}, {"denominator", "cumulative"}}},
      {"gated_softmax_decay",
       "softmax-count",
       {{"clamp", "5"}, {"position", "none"}, {"decay", "true"}, {"in_gate", "true"}, {"out_gate", "before"}, {"norm", "layer"}}},
      {"softmax_taylor", "taylor", {{"order", "10"}}},
      {"linear_elu", "linear-elu", {}},
      {"linear_relu", "linear-relu", {}},
      {"linear_cosine", "linear-cosine", {}}};
  for (const Row& row : rows) EXPECT_EQ(error_of(row.preset, row.settings), "") << row.name;
}

TEST(Presets, RefuseToDivideByWhatMayBeZero) {
  const std::string nearest =
      " needs weights that are never negative, which these are not; denominator=clamp is the nearest that works";
  EXPECT_EQ(error_of("linear-identity", {{"denominator", "sum"}}), "linear-identity: denominator=sum" + nearest);
  EXPECT_EQ(error_of("linear-cosine", {{"denominator", "detach"}}), "");
  EXPECT_EQ(error_of("linear-cosine", {{"denominator", "detach"}, {"floor", "0"}}),
            "linear-cosine: denominator=detach" + nearest);
  EXPECT_EQ(error_of("rff", {{"denominator", "sum"}}), "rff: denominator=sum" + nearest);
  EXPECT_EQ(error_of("luna", {{"positive", "false"}, {"denominator", "sum"}}), "luna: denominator=sum" + nearest);
  EXPECT_EQ(error_of("taylor", {{"order", "3"}, {"denominator", "sum"}}), "taylor: denominator=sum" + nearest);
  EXPECT_EQ(error_of("taylor", {{"order", "3"}}), "");
  EXPECT_EQ(error_of("linear-relu", {{"clamp", "5"}}), "linear-relu: denominator=sum" + nearest);
}

TEST(Presets, SayWhatTheyExpect) {
  EXPECT_EQ(error_of("inline", {{"residual", "image"}}), "inline: residual=image needs rows and columns, got 0 and 0");
  EXPECT_EQ(error_of("inline", {{"residual", "image"}, {"rows", "4"}, {"columns", "4"}}),
            "inline: residual=image needs causal=false; residual=mean is the nearest that works");
  EXPECT_EQ(error_of("inline", {{"residual", "mean"}, {"causal", "false"}}),
            "inline: residual=mean needs causal=true; residual=image is the nearest that works");
  EXPECT_EQ(error_of("gla", {{"norm_eps", "0"}}), "norm_eps: expected a positive number, got 0");
  EXPECT_EQ(error_of("fox", {{"pro", "true"}, {"qk_norm_eps", "-1"}}), "qk_norm_eps: expected a positive number, got -1");
  EXPECT_EQ(error_of("fox", {{"norm_eps", "1e-6"}}), "fox: option norm_eps has no effect without pro=true");
  EXPECT_EQ(error_of("softmax", {{"norm_eps", "1e-6"}}), "softmax: option norm_eps has no effect without a norm");
  EXPECT_EQ(error_of("softmax", {{"denominator", "clamp"}, {"denominator_eps", "1e-6"}}),
            "softmax: option denominator_eps has no effect without denominator=detach");
  EXPECT_EQ(error_of("retnet", {{"position", "none"}, {"rope_ends", "true"}}),
            "retnet: option rope_ends has no effect without position=rope");
  EXPECT_EQ(error_of("s5", {{"blocks", "3"}}), "s5: expected blocks that divide state=32, got 3");
  EXPECT_EQ(error_of("rff", {{"sigma", "0"}}), "sigma: expected a positive number, got 0");
  EXPECT_EQ(error_of("rff", {{"gate", "true"}, {"causal", "false"}}), "rff: a gate needs causal=true");
  EXPECT_EQ(error_of("lru", {{"r_min", "1"}}), "lru: expected 0 <= r_min < r_max <= 1, got 1 and 1");
  EXPECT_EQ(error_of("lru", {{"max_phase", "0"}}), "max_phase: expected a positive number, got 0");
  EXPECT_EQ(error_of("rg-lru", {{"heads", "3"}}), "rg-lru: expected heads that divide inner=64, got 3");
  EXPECT_EQ(error_of("mamba2", {{"attention", "4"}, {"attention_kv_heads", "3"}}),
            "mamba2: expected attention_kv_heads that divide attention=4, got 3");
  EXPECT_EQ(error_of("mamba2", {{"position", "rope"}}),
            "mamba2: position=rope needs attention; attention=4 is the nearest that works");
  EXPECT_EQ(error_of("mamba2", {{"heads", "3"}}), "mamba2: expected heads that divide 128, got 3");
  EXPECT_EQ(error_of("mlstm", {{"softcap", "-1"}}), "softcap: expected a number >= 0, got -1");
  EXPECT_EQ(error_of("mlstm", {{"block", "pre-up"}, {"heads", "2"}}, {.width = 33 * 2}), "");
  EXPECT_EQ(error_of("mlstm-sig", {{"block", "pre-up"}, {"heads", "1"}}, {.width = 3}),
            "mlstm-sig: block=pre-up needs an even width, got 3");
  EXPECT_EQ(error_of("inline", {{"heads", "3"}, {"key", "8"}, {"value", "8"}}),
            "inline: residual=mean needs heads that divide the width 64, got 3");
  EXPECT_EQ(error_of("gla", {{"heads", "3"}, {"key", "8"}, {"value", "8"}, {"position", "selective-rope"}}),
            "gla: position=selective-rope needs heads that divide the width 64, got 3");
  EXPECT_EQ(error_of("gla", {{"position", "rope"}, {"rope_base", "0"}}), "rope_base: expected a positive number, got 0");
  EXPECT_EQ(error_of("gla", {{"position", "selective-rope"}, {"phase_base", "0.5"}}),
            "phase_base: expected a number >= 1, got 0.5");
  EXPECT_EQ(error_of("mlstm", {{"block", "pre-up"}, {"key", "8"}}), "mlstm: option key has no effect without block=post-up");
}

}  // namespace
}  // namespace isomer

// Costs that are read off a graph against the layer that runs it.
#include <gtest/gtest.h>

#include <algorithm>

#include "isomer/mixers/cost.h"
#include "isomer/mixers/preset.h"
#include "isomer/nn/mixer.h"

namespace isomer {
namespace {

void expect_agreement(const Preset& preset, const Settings& settings) {
  const Place place{.width = 32, .layer = 1, .layers = 2};
  const graph::Graph graph = build_mixer(preset, place, settings);
  const Cost cost = cost_of(graph, 100);
  Parameters<float> parameters;
  const Mixer<float> mixer(graph, parameters, "");
  EXPECT_EQ(cost.parameters, parameters.trained_size()) << preset.name;
  if (!graph::causal(graph) || cost.state_per_token > 0) return;
  // Sums over tokens are kept in double, a window's ring is made when it is needed, and means of tokens have a count of their
  // own.
  Index doubles = 0, rings = 0;
  for (const graph::Node& node : graph.nodes) {
    if (std::holds_alternative<graph::RunningSum>(node.work) || std::holds_alternative<graph::Mean>(node.work))
      doubles += node.heads * node.size;
    if (const auto* law = std::get_if<graph::Law>(&node.work)) rings += law->name() == "attention" ? 1 : 0;
  }
  if (rings > 0) return;
  EXPECT_EQ(4 * (cost.state_floats + doubles), mixer.start(1).bytes()) << preset.name;
}

TEST(Cost, IsThatOfTheLayerThatRuns) {
  for (const Preset* preset : presets()) {
    expect_agreement(*preset, {});
    const std::vector<MixerOption> options = options_of(*preset, {.width = 32});
    const auto has = [&](std::string_view name) {
      return std::any_of(options.begin(), options.end(), [&](auto& o) { return o.name == name; });
    };
    if (has("position")) expect_agreement(*preset, {{"position", "learned"}});
    if (has("phase_rank")) {
      expect_agreement(*preset, {{"position", "selective-rope"}, {"phase_bias", "true"}});
      expect_agreement(*preset, {{"position", "selective-rope"}, {"phase_rank", "3"}, {"phase_filter", "difference"}});
    }
    if (has("norm_gain")) expect_agreement(*preset, {{"norm", "layer"}, {"in_gate", "true"}, {"out_gate", "before"}});
    if (has("denominator")) expect_agreement(*preset, {{"denominator", "cumulative"}});
  }
  expect_agreement(find_preset("mlstm"), {{"block", "pre-up"}});
  expect_agreement(find_preset("fox"), {{"pro", "true"}});
  expect_agreement(find_preset("metala"), {{"with_key", "true"}, {"conv", "0"}, {"augment", "false"}});
  for (const char* residual : {"dynamic", "static", "none"}) expect_agreement(find_preset("inline"), {{"residual", residual}});
  expect_agreement(find_preset("luna"), {{"psi", "shared"}, {"envelope", "learned"}});
}

}  // namespace
}  // namespace isomer

#include "isomer/nn/mixer_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "isomer/mixers/builder.h"
#include "isomer/mixers/preset.h"

namespace isomer {
namespace {

using graph::Graph;

TEST(MixerSchedule, RunsEveryNodeOnceAndAfterItsInputs) {
  for (const Preset* preset : presets()) {
    const Graph graph = build_mixer(*preset, {.width = 32});
    const MixerSchedule schedule = schedule_of(graph);
    std::vector<int> runs(graph.nodes.size());
    const auto expect_ready = [&](const std::vector<int>& inputs) {
      for (const int input : inputs) EXPECT_EQ(runs[std::size_t(input)], 1) << preset->name << ": node " << input;
    };
    for (const auto& [node, g] : schedule.turns) {
      if (g < 0) {
        expect_ready(graph.nodes[std::size_t(node)].inputs);
        ++runs[std::size_t(node)];
        continue;
      }
      const NodeGroup& group = schedule.groups[std::size_t(g)];
      expect_ready(group.inputs);
      EXPECT_TRUE(fits(int(group.inputs.size()), int(group.steps.size()), int(group.outputs.size()))) << preset->name;
      for (const int inside : group.nodes) ++runs[std::size_t(inside)];
      for (const NodeGroup::Concat& concat : group.concats) ++runs[std::size_t(concat.node)];
    }
    EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), std::ptrdiff_t(runs.size())) << preset->name;
  }
}

/// The group that computes the node.
const NodeGroup& group_of(const MixerSchedule& schedule, const Graph& graph, std::string_view name) {
  const auto named = [&](int i) { return graph.nodes[std::size_t(i)].name == name; };
  return *std::find_if(schedule.groups.begin(), schedule.groups.end(),
                       [&](const NodeGroup& group) { return std::any_of(group.nodes.begin(), group.nodes.end(), named); });
}

TEST(MixerSchedule, JoinsWhatThePresetWritesApart) {
  // Six mixes with the token before stand between projections.
  const Graph graph = build_mixer("rwkv7", {.width = 64});
  const MixerSchedule schedule = schedule_of(graph);
  const NodeGroup& mixes = group_of(schedule, graph, "xr");
  EXPECT_EQ(&mixes, &group_of(schedule, graph, "xg"));
  EXPECT_EQ(mixes.results.size(), 6u);
  EXPECT_EQ(mixes.inputs.size(), 8u) << "x, the token before, and six weights";
  // k is made of a projection of one of them.
  EXPECT_NE(&mixes, &group_of(schedule, graph, "k"));
}

TEST(MixerSchedule, WritesWhatOtherLayersTake) {
  // Both would stay inside their group otherwise.
  const Preset preset{.name = "giving", .source = "", .summary = "", .build = [](Builder& m) {
                        const Value a = m.map(Unary::tanh, m.x()), b = m.map(Unary::exp, m.x());
                        EXPECT_FALSE(m.from_first_layer("a", a).present());
                        EXPECT_FALSE(m.from_first_layer("b", b).present());
                        m.output(m.linear("o", m.add(m.concat({b, a}), m.concat({a, b})), m.width()));
                      }};
  const Graph graph = build_mixer(preset, {.width = 8});
  ASSERT_EQ(graph.given.size(), 2u);
  const MixerSchedule schedule = schedule_of(graph);
  for (const graph::Given& given : graph.given) {
    const auto& results = schedule.groups[0].results;
    EXPECT_TRUE(std::ranges::any_of(results, [&](const auto& result) { return result.node == given.node; })) << given.name;
  }
}

TEST(MixerSchedule, WritesFeaturesWhereTheyAreConcatenated) {
  const Graph graph = build_mixer("rff", {.width = 64});
  const MixerSchedule schedule = schedule_of(graph);
  std::size_t concats = 0;
  for (const NodeGroup& group : schedule.groups) concats += group.concats.size();
  EXPECT_EQ(concats, 2u) << "those of queries and of keys";
}

}  // namespace
}  // namespace isomer

// Every preset is a dynamical system.
#include "isomer/nn/mixer_dsf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "isomer/base/rng.h"
#include "isomer/mixers/cost.h"
#include "isomer/mixers/preset.h"
#include "isomer/nn/init.h"

namespace isomer {
namespace {

constexpr Index kWidth = 16, kTokens = 21, kBatch = 2;

/// The laws of a mixer with parameters away from their starts, on a random input.
std::vector<LawCall> calls_of(graph::Graph graph) {
  Parameters<double> parameters;
  Mixer<double> mixer(std::move(graph), parameters, "");
  initialise(parameters, 3);
  Rng rng(4);
  for (const Parameter<double>& p : parameters.all())
    if (p.trained())
      for (double& value : p.values()) value += 0.2 * rng.normal();
  std::vector<double> x(std::size_t(kBatch * kTokens * kWidth));
  for (double& value : x) value = rng.normal();
  Context context(1);
  Tape<double> tape(context, Record::no);
  return mixer.law_calls(tape, tape.input(contiguous(x.data(), {kBatch, kTokens, 1, kWidth})));
}

class DsfOfPreset : public testing::TestWithParam<const Preset*> {};

TEST_P(DsfOfPreset, IsADynamicalSystem) {
  for (const LawCall& call : calls_of(build_mixer(*GetParam(), {.width = kWidth}))) {
    SCOPED_TRACE(call.law + ", node " + std::to_string(call.node));
    EXPECT_LE(dsf_error(call), 1e-12);
    EXPECT_LE(dsf_error(call, {.eta = DsfOptions::Eta::read_out}), 1e-12);
  }
}

TEST_P(DsfOfPreset, HasTheSizeThatItsGraphSays) {
  const auto options = options_of(*GetParam(), {.width = kWidth});
  const bool window = std::any_of(options.begin(), options.end(), [](const auto& option) { return option.name == "window"; });
  const graph::Graph graph = build_mixer(*GetParam(), {.width = kWidth}, window ? Settings{{"window", "5"}} : Settings{});
  const StateDimension said = state_dimension(graph);
  Index sum = 0;
  for (const DsfView& view : dsf_views(calls_of(graph).front())) {
    sum += view.state_dimension();
    EXPECT_EQ(view.features, said.grows ? kTokens : said.features);
  }
  EXPECT_EQ(sum, said.channels * (said.grows ? kTokens : said.features));
}

INSTANTIATE_TEST_SUITE_P(Dsf, DsfOfPreset, testing::ValuesIn(presets().begin(), presets().end()), [](const auto& preset) {
  std::string name(preset.param->name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Softmax is separable with infinitely many features: heads of two keys show it with those up to order 40.
TEST(DsfOfSoftmax, IsTheLimitOfTaylorOrders) {
  for (const char* preset : {"softmax", "softmax-norm", "fox"})
    for (const LawCall& call : calls_of(build_mixer(preset, {.width = kWidth}, {{"heads", "8"}}))) {
      const double coarse = dsf_error(call, {.order = 4}), fine = dsf_error(call, {.order = 8});
      EXPECT_LT(fine, 0.3 * coarse) << preset;
      EXPECT_LE(dsf_error(call, {.order = 40}), 1e-12) << preset;
    }
}

TEST(DsfViews, ShowEveryHead) {
  const std::vector<LawCall> calls = calls_of(build_mixer("retnet", {.width = kWidth}, {{"heads", "4"}}));
  ASSERT_EQ(calls.size(), 1);
  const std::vector<DsfView> views = dsf_views(calls[0]);
  ASSERT_EQ(views.size(), 4);
  for (const DsfView& view : views) {
    const double decay = 1 - std::exp2(-5.0 - double(view.head));
    EXPECT_NEAR(view.size_range().low, decay, 1e-15);
    EXPECT_NEAR(view.size_range().high, decay, 1e-15);
    EXPECT_EQ(view.state_dimension(), 4 * 8);
    EXPECT_EQ(view.weights.size(), std::size_t(kTokens * kTokens));
    EXPECT_FALSE(view.averaged);
  }
}

// The rows of softmax's matrix are distributions; a mixer of channels shows the mean size over them.
TEST(DsfViews, ShowTheEffectiveAttentionMatrix) {
  for (const DsfView& view : dsf_views(calls_of(build_mixer("softmax", {.width = kWidth}))[0]))
    for (Index t = 0; t < kTokens; ++t) {
      double sum = 0;
      for (Index s = 0; s < kTokens; ++s) {
        EXPECT_GE(view.weights[t * kTokens + s], 0);
        sum += view.weights[t * kTokens + s];
      }
      EXPECT_NEAR(sum, 1, 1e-13);
    }
  const std::vector<DsfView> scan = dsf_views(calls_of(build_mixer("mamba", {.width = kWidth}))[0]);
  ASSERT_EQ(scan.size(), 1);
  EXPECT_TRUE(scan[0].averaged);
  EXPECT_LT(scan[0].size_range().high, 1);
  EXPECT_EQ(scan[0].channels, 2 * kWidth);
  EXPECT_EQ(scan[0].features, 16);
}

}  // namespace
}  // namespace isomer

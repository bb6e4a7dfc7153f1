#include "isomer/mixers/law_settings.h"

#include <gtest/gtest.h>

namespace isomer {
namespace {

using Direction = AttentionOptions::Direction;

TEST(LawSettings, AreThoseOfTheCommandLine) {
  const auto of = [](auto options) { return settings_of({.options = options, .roles = {}}); };
  EXPECT_EQ(of(AttentionOptions{}), Settings{});
  const Settings attention{{"scale", "0.1"}, {"clamp", "5"}, {"causal", "false"},  {"window", "100000"},   {"sinks", "4"},
                           {"eps", "1e-06"}, {"order", "3"}, {"kernel", "taylor"}, {"normaliser", "layer"}};
  EXPECT_EQ(of(AttentionOptions{.scale = 0.1,
                                .clamp = 5,
                                .direction = Direction::bidirectional,
                                .window = 100000,
                                .sinks = 4,
                                .kernel = AttentionOptions::Kernel::taylor,
                                .order = 3,
                                .normaliser = AttentionOptions::Normaliser::layer,
                                .eps = 1e-6}),
            attention);
  const double third = 1.0 / 3;
  const Settings decay = of(ScalarDecayOptions{.scale = third, .normaliser = ScalarDecayOptions::Normaliser::max, .eps = 0.5});
  EXPECT_EQ(read_number(decay, "scale", 0), third) << "every bit comes back";
  EXPECT_EQ(decay.at("normaliser"), "max");
  EXPECT_EQ(decay.at("eps"), "0.5");
  EXPECT_EQ(of(ChannelDecayOptions{.read = ChannelDecayOptions::Read::before}), (Settings{{"read", "before"}}));
  EXPECT_EQ(of(DeltaOptions{.scale = 1, .l2norm = true}), (Settings{{"scale", "1"}, {"l2norm", "true"}}));
  EXPECT_EQ(of(ScanOptions{}), Settings{});
  EXPECT_EQ(of(graph::ScanS6Options{}), Settings{});
}

}  // namespace
}  // namespace isomer

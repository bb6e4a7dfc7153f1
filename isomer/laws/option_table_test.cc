// The options of the laws as text: there and back.
#include "isomer/laws/option_table.h"

#include <gtest/gtest.h>

#include "isomer/laws/attention/attention_law.h"
#include "isomer/laws/channel_decay/channel_decay_law.h"
#include "isomer/laws/delta/delta_law.h"
#include "isomer/laws/scalar_decay/scalar_decay_law.h"
#include "isomer/laws/scan/scan_law.h"

namespace isomer {
namespace {

TEST(LawOptions, AreThoseOfTheCommandLine) {
  EXPECT_EQ(BoundAttention().settings(), Settings{});
  const Settings attention{{"scale", "0.1"}, {"clamp", "5"}, {"causal", "false"},  {"window", "100000"},   {"sinks", "4"},
                           {"eps", "1e-06"}, {"order", "3"}, {"kernel", "taylor"}, {"normaliser", "layer"}};
  EXPECT_EQ(BoundAttention({.scale = 0.1,
                            .clamp = 5,
                            .direction = AttentionOptions::Direction::bidirectional,
                            .window = 100000,
                            .sinks = 4,
                            .kernel = AttentionOptions::Kernel::taylor,
                            .order = 3,
                            .normaliser = AttentionOptions::Normaliser::layer,
                            .eps = 1e-6})
                .settings(),
            attention);
  EXPECT_EQ(BoundAttention({.order = 3}).settings(), Settings{}) << "there is no polynomial";
  const double third = 1.0 / 3;
  const Settings decay =
      BoundScalarDecay({.scale = third, .normaliser = ScalarDecayOptions::Normaliser::max, .eps = 0.5}).settings();
  EXPECT_EQ(read_number(decay, "scale", 0), third) << "every bit comes back";
  EXPECT_EQ(decay.at("normaliser"), "max");
  EXPECT_EQ(decay.at("eps"), "0.5");
  EXPECT_EQ(BoundChannelDecay({.read = ChannelDecayOptions::Read::before}).settings(), (Settings{{"read", "before"}}));
  EXPECT_EQ(BoundDelta({.scale = 1, .l2norm = true}).settings(), (Settings{{"scale", "1"}, {"l2norm", "true"}}));
  EXPECT_EQ(BoundScan().settings(), Settings{});
}

TEST(LawOptions, ComeBackFromText) {
  for (const Law* law : laws())
    for (const Case& what : law->cases()) {
      const Settings once = law->bind(what.settings)->settings();
      EXPECT_EQ(law->bind(once)->settings(), once) << law->name() << " " << what.label;
      for (const auto& [name, value] : once) EXPECT_EQ(what.settings.at(name), value) << law->name() << " " << what.label;
    }
}

TEST(LawOptions, AreShownWithTheirDefaults) {
  const auto shown = [](std::string_view law, std::string_view name) -> std::string {
    for (const OptionSpec& option : find_law(law).options())
      if (option.name == name) return std::string(option.fallback);
    return "none";
  };
  EXPECT_EQ(shown("attention", "scale"), "K^-1/2");
  EXPECT_EQ(shown("attention", "clamp"), "inf");
  EXPECT_EQ(shown("attention", "causal"), "true");
  EXPECT_EQ(shown("attention", "window"), "0");
  EXPECT_EQ(shown("attention", "kernel"), "exp");
  EXPECT_EQ(shown("attention", "order"), "2");
  EXPECT_EQ(shown("scalar_decay", "normaliser"), "none");
  EXPECT_EQ(shown("scalar_decay", "eps"), "0");
  EXPECT_EQ(shown("channel_decay", "read"), "after");
  EXPECT_EQ(shown("delta", "l2norm"), "false");
}

}  // namespace
}  // namespace isomer

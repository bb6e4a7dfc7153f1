// Keys that are hidden from queries.
#include <gtest/gtest.h>

#include "isomer/mixers/preset.h"
#include "isomer/nn/small_layer.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

constexpr Index kTokens = 7, kWidth = 8;

class Hidden : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] std::vector<double> forward(Index tokens, const std::vector<std::uint8_t>& hidden) {
    Tape<double> tape(context_, Record::no);
    return SmallLayer<double>::numbers(
        layer_.mixer().forward(tape, tape.input(layer_.some(0, tokens)), {.hidden = hidden}).value);
  }
  Context context_{1};
  SmallLayer<double> layer_{build_mixer(GetParam(), {.width = kWidth}, {{"heads", "2"}, {"causal", "false"}})};
};
INSTANTIATE_TEST_SUITE_P(Mixers, Hidden, ::testing::Values("softmax", "inline", "linear-relu", "luna"), [](const auto& one) {
  std::string name = one.param;
  std::erase(name, '-');
  return name;
});

TEST_P(Hidden, AKeyIsAsIfItWereNotThere) {
  std::vector<std::uint8_t> last(kTokens * kTokens, 0);
  for (Index t = 0; t < kTokens; ++t) last[std::size_t(t * kTokens + kTokens - 1)] = 1;
  const std::vector<double> all = forward(kTokens, last), fewer = forward(kTokens - 1, {}), none = forward(kTokens, {});
  const std::size_t row = kTokens * kWidth, short_row = row - kWidth;
  double hiding = 0;
  for (std::size_t b = 0; b < SmallLayer<double>::kBatch; ++b)
    for (std::size_t i = 0; i < short_row; ++i) {
      EXPECT_NEAR(all[b * row + i], fewer[b * short_row + i], 1e-12);
      hiding = std::max(hiding, std::abs(all[b * row + i] - none[b * row + i]));
    }
  EXPECT_GT(hiding, 1e-4);
}

TEST_P(Hidden, OfNothingIsForward) {
  const std::vector<double> all = forward(kTokens, std::vector<std::uint8_t>(kTokens * kTokens, 0)), want = forward(kTokens, {});
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(all[i], want[i], 1e-12);
}

TEST(HiddenKeys, NeedAMixerThatSeesAllAndSomethingToSee) {
  Context context(1);
  Tape<double> tape(context, Record::no), recording(context);
  SmallLayer<double> causal(build_mixer("softmax", {.width = kWidth})),
      all(build_mixer("softmax", {.width = kWidth}, {{"causal", "false"}}));
  const auto error = [&](SmallLayer<double>& layer, Tape<double>& on, std::size_t size, std::uint8_t fill) {
    const std::vector<std::uint8_t> hidden(size, fill);
    return tests::error_of([&] { (void)layer.mixer().forward(on, on.input(layer.some(0, kTokens)), {.hidden = hidden}); });
  };
  const char* whole = "mixer: expected a mixer that sees the whole input, and a tape that does not record, to hide keys";
  EXPECT_EQ(error(causal, tape, 49, 0), whole);
  EXPECT_EQ(error(all, recording, 49, 0), whole);
  EXPECT_EQ(error(all, tape, 48, 0), "mixer: expected 7 x 7 numbers for the keys that are hidden, got 48");
  SmallLayer<double> near(build_mixer("sliding-window", {.width = kWidth}, {{"causal", "false"}, {"window", "3"}}));
  SmallLayer<double> biased(build_mixer("softmax", {.width = kWidth}, {{"causal", "false"}, {"distance_bias", "t5"}}));
  const char* distances = "mixer: expected a mixer without windows and biases by distance to hide keys of";
  EXPECT_EQ(error(near, tape, 49, 0), distances);
  EXPECT_EQ(error(biased, tape, 49, 0), distances);
  EXPECT_EQ(error(all, tape, 49, 1), "mixer: expected a key that query 0 sees, got all of them hidden");
}

}  // namespace
}  // namespace isomer

#include "isomer/train/sample.h"

#include <gtest/gtest.h>

#include <cmath>

#include "isomer/base/error.h"

namespace isomer {
namespace {

TEST(Sampler, DrawsTokensAsOftenAsTheirProbability) {
  const std::vector<float> logits{std::log(1.0f), std::log(3.0f), std::log(6.0f), -100.0f};
  Sampler sampler({}, 1);
  std::vector<double> counts(4);
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) counts[std::size_t(sampler(logits))] += 1.0 / kDraws;
  EXPECT_NEAR(counts[0], 0.1, 0.01);
  EXPECT_NEAR(counts[1], 0.3, 0.015);
  EXPECT_NEAR(counts[2], 0.6, 0.015);
  EXPECT_EQ(counts[3], 0);
}

TEST(Sampler, TakesTheLargestAtTemperatureZeroAndAmongOne) {
  const std::vector<float> logits{0, 2, 1};
  Sampler cold({.temperature = 0}, 1), one({.top_k = 1}, 1);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(cold(logits), 1);
    EXPECT_EQ(one(logits), 1);
  }
}

TEST(Sampler, LeavesOutWhatIsNotAmongTheLargest) {
  const std::vector<float> logits{0, 2, 1, 2};
  Sampler sampler({.temperature = 5, .top_k = 2}, 1);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(sampler(logits) % 2, 1);
}

TEST(Sampler, RefusesWhatMakesNoSense) {
  EXPECT_THROW(Sampler({.temperature = -1}, 1), Error);
  EXPECT_THROW(Sampler({.top_k = -1}, 1), Error);
}

}  // namespace
}  // namespace isomer

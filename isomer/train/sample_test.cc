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

TEST(Sampler, KeepsTheFewestThatHaveTheShare) {
  // 0.5, 0.3, 0.15, 0.05, in another order.
  const std::vector<float> logits{std::log(0.15f), std::log(0.5f), std::log(0.05f), std::log(0.3f)};
  for (const auto& [p, k, kept] :
       {std::tuple{0.4, 0, 1}, {0.5, 0, 1}, {0.6, 0, 2}, {0.81, 0, 3}, {0.96, 0, 4}, {1.0, 0, 4}, {0.96, 2, 2}, {0.5, 2, 1}}) {
    Sampler sampler({.top_k = k, .top_p = p}, 1);
    std::vector<double> counts(4);
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) counts[std::size_t(sampler(logits))] += 1.0 / kDraws;
    constexpr std::array kOrder{1, 3, 0, 2};
    constexpr std::array kShares{0.5, 0.3, 0.15, 0.05};
    double total = 0;
    for (int i = 0; i < kept; ++i) total += kShares[std::size_t(i)];
    for (int i = 0; i < 4; ++i)
      EXPECT_NEAR(counts[std::size_t(kOrder[std::size_t(i)])], i < kept ? kShares[std::size_t(i)] / total : 0, 0.015) << p << i;
  }
}

TEST(Sampler, DrawsTheSameFromAnyPlaceOn) {
  const std::vector<float> logits{0, 2, 1, 2, 3};
  Sampler whole({}, 5), later({}, 5);
  std::vector<std::int64_t> tokens;
  for (int i = 0; i < 40; ++i) tokens.push_back(whole(logits));
  EXPECT_EQ(whole.drawn(), 40U);
  later.skip_to(17);
  for (std::size_t i = 17; i < 40; ++i) EXPECT_EQ(later(logits), tokens[i]);
}

TEST(Sampler, RefusesWhatMakesNoSense) {
  EXPECT_THROW(Sampler({.temperature = -1}, 1), Error);
  EXPECT_THROW(Sampler({.top_k = -1}, 1), Error);
  for (const double p : {0.0, -1.0, 1.5, std::nan("")}) EXPECT_THROW(Sampler({.top_p = p}, 1), Error);
}

}  // namespace
}  // namespace isomer

#include "isomer/models/prompt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "isomer/base/rng.h"

namespace isomer {
namespace {

TEST(Likeliest, IsTheFirstOfTheLargest) {
  Rng rng(1);
  for (const std::size_t size : {1u, 7u, 8u, 9u, 100u, 1003u}) {
    std::vector<float> logits(size);
    for (float& x : logits) x = float(rng.normal()) - 5;
    for (const std::size_t at : {std::size_t(0), size / 2, size - 1}) {
      std::vector<float> row = logits;
      row[at] = 3;
      EXPECT_EQ(likeliest(row), std::int64_t(at)) << size;
      row[size - 1] = 3;
      EXPECT_EQ(likeliest(row), std::int64_t(at)) << "the first of two";
    }
  }
}

TEST(Likeliest, PassesOverWhatIsNoNumber) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), none = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(likeliest(std::vector<float>{nan, 1, nan, 2, nan}), 3);
  EXPECT_EQ(likeliest(std::vector<float>{nan, nan}), 0);
  EXPECT_EQ(likeliest(std::vector<float>(20, none)), 0);
}

TEST(Likeliest, HasItsShareOfSoftmax) {
  const std::vector<float> logits{1, 3, -2, 3};
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double(logit));
  for (std::size_t i = 0; i < logits.size(); ++i)
    EXPECT_NEAR(probability_of(std::int64_t(i), logits), std::exp(double(logits[i])) / sum, 1e-15);
  EXPECT_EQ(probability_of(0, std::vector<float>{1000, -1000}), 1);
}

}  // namespace
}  // namespace isomer

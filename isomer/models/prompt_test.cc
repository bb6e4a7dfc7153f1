#include "isomer/models/prompt.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace isomer

#include "isomer/base/correlation.h"

#include <gtest/gtest.h>

#include <vector>

namespace isomer {
namespace {

using Numbers = std::vector<double>;

TEST(Correlation, OfALineIsOne) {
  EXPECT_DOUBLE_EQ(pearson(Numbers{1, 2, 4}, Numbers{3, 5, 9}), 1);
  EXPECT_DOUBLE_EQ(pearson(Numbers{1, 2, 4}, Numbers{-3, -5, -9}), -1);
}

TEST(Correlation, OfRanksSeesTheOrderAlone) {
  const Numbers x{3, 1, 2, 5, 4}, y{30, 10, 20, 5000, 40};
  EXPECT_DOUBLE_EQ(spearman(x, y), 1);
  EXPECT_LT(pearson(x, y), 0.9);
}

// Ranks 0, 1.5, 1.5, 3 and 0, 2, 1, 3: scipy.stats.spearmanr gives 0.9486832980505138.
TEST(Correlation, EqualNumbersShareTheirRanks) {
  EXPECT_NEAR(spearman(Numbers{1, 2, 2, 3}, Numbers{10, 30, 20, 40}), 0.9486832980505138, 1e-15);
}

TEST(Correlation, OfAConstantIsZero) {
  EXPECT_EQ(pearson(Numbers{1, 1, 1}, Numbers{1, 2, 3}), 0);
  EXPECT_EQ(spearman(Numbers{}, Numbers{}), 0);
}

}  // namespace
}  // namespace isomer

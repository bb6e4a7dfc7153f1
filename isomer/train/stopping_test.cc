// When a run ends before its steps are done.
#include "isomer/train/stopping.h"

#include <gtest/gtest.h>

namespace isomer {
namespace {

TrainRecipe recipe_of(double stop_at, Index patience) {
  TrainRecipe recipe;
  recipe.stop_at = stop_at, recipe.patience = patience;
  return recipe;
}

TEST(Stopping, AtTheGoalInTheMetricsOwnDirection) {
  Stopping accuracy(recipe_of(0.9, 0), false), error(recipe_of(0.2, 0), true), never(recipe_of(0, 0), true);
  EXPECT_FALSE(accuracy.enough(0.89));
  EXPECT_TRUE(accuracy.enough(0.9));
  EXPECT_TRUE(accuracy.reached_goal());
  EXPECT_FALSE(error.enough(0.3));
  EXPECT_TRUE(error.enough(0.1));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(never.enough(0));
}

TEST(Stopping, AfterSoManyLooksInARowWithoutABetterOne) {
  Stopping stopping(recipe_of(0, 2), false);
  for (const double value : {0.1, 0.3, 0.3, 0.4, 0.2}) EXPECT_FALSE(stopping.enough(value)) << value;
  EXPECT_TRUE(stopping.enough(0.4)) << "as good as the best is no better";
  EXPECT_TRUE(stopping.out_of_patience());
  EXPECT_FALSE(stopping.reached_goal());
}

}  // namespace
}  // namespace isomer

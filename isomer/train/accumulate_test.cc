// Batches in parts: the same training up to rounding, with the same books.
#include <gtest/gtest.h>

#include <algorithm>

#include "isomer/train/memory.h"
#include "isomer/train/session.h"
#include "isomer/train/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {
Recipe recipe_with(const std::string& accumulate, const std::string& optimiser = "adamw") {
  return parse_recipe(parse_toml(tests::kSmallRecipe, "small.toml"),
                      {"train.batch=8", "train.short_window=4", "model.dropout=0.1", "train.accumulate=" + accumulate,
                       "train.optimiser=" + optimiser});
}

std::vector<float> weights_of(Session& session) {
  std::vector<float> all;
  for (const Parameter<float>& p : session.parameters().all()) all.insert(all.end(), p.values().begin(), p.values().end());
  return all;
}

TEST(Accumulate, TrainsLikeTheWholeBatch) {
  Context context(1);
  for (const char* parts : {"2", "3", "8"}) {
    // Not AdamW, which makes much of rounding where a gradient is nearly zero.
    Session whole(recipe_with("1", "sgd"), context), cut(recipe_with(parts, "sgd"), context);
    for (Index step = 1; step <= 6; ++step) {
      const StepReport want = whole.step(), got = cut.step();
      EXPECT_EQ(got.step, want.step);
      EXPECT_EQ(got.tokens, want.tokens);
      EXPECT_EQ(got.lr, want.lr);
      EXPECT_NEAR(got.loss, want.loss, 2e-5 * want.loss) << parts << " parts, step " << step;
      EXPECT_NEAR(got.gradient_norm, want.gradient_norm, 1e-4 * want.gradient_norm) << parts << " parts, step " << step;
    }
  }
}

TEST(Accumulate, GoesOnBitByBit) {
  Context context(1);
  Session straight(recipe_with("3"), context), first(recipe_with("3"), context), second(recipe_with("3"), context);
  for (int i = 0; i < 6; ++i) (void)straight.step();
  for (int i = 0; i < 2; ++i) (void)first.step();
  second.resume(first.checkpoint());
  for (int i = 0; i < 4; ++i) (void)second.step();
  EXPECT_EQ(weights_of(second), weights_of(straight));
  Context more(3);
  Session threads(recipe_with("3"), more);
  for (int i = 0; i < 6; ++i) (void)threads.step();
  EXPECT_EQ(weights_of(threads), weights_of(straight));
}

TEST(Accumulate, IsAtMostTheBatch) {
  Context context(1);
  EXPECT_EQ(tests::error_of([&] { const Session session(recipe_with("9"), context); }),
            "--set: expected train.accumulate from 1 to train.batch = 8, got 9");
  EXPECT_EQ(tests::error_of([&] { (void)recipe_with("0"); }),
            "--set: expected a whole number of at least 1 for train.accumulate, got 0");
}

TEST(Accumulate, TakesTheActivationsOfAPart) {
  const Recipe whole = recipe_with("1"), cut = recipe_with("4");
  const TaskShape task = task_of(whole)->shape();
  const auto activations = [&](const Recipe& recipe) {
    return memory_of(recipe.train, model_of(recipe, task), task.length).activations;
  };
  EXPECT_LT(activations(cut), 0.3 * activations(whole));
}

// Two sessions with equal batches are one: halves and doubles are exact.
TEST(Reduction, OfEqualSessionsChangesNothing) {
  Context context(1);
  Session alone(recipe_with("2"), context), one_of_two(recipe_with("2"), context);
  Index sums = 0, arrays = 0;
  one_of_two.reduce_with({.sum =
                              [&](double x) {
                                ++sums;
                                return 2 * x;
                              },
                          .sum_array =
                              [&](std::span<float> all) {
                                ++arrays;
                                for (float& x : all) x *= 2;
                              }});
  for (int i = 0; i < 3; ++i) {
    const StepReport want = alone.step(), got = one_of_two.step();
    EXPECT_EQ(got.loss, want.loss);
    EXPECT_EQ(got.gradient_norm, want.gradient_norm);
  }
  EXPECT_EQ(weights_of(one_of_two), weights_of(alone));
  EXPECT_EQ(sums, 6) << "labels and loss of each step";
  EXPECT_EQ(arrays, 3) << "one array a step";
}

}  // namespace
}  // namespace isomer

#include "isomer/study/probes.h"

#include <gtest/gtest.h>

#include "tests/error_of.h"

namespace isomer::study {
namespace {

using tests::error_of;

/// Both kinds of layers, and a window that is drawn.
constexpr const char* kRecipe = R"(
[model]
width = 16
layers = ["mlstm", "sliding-window"]
mlp = "none"
[mixer.all]
heads = 1
window = 4
[task]
name = "induction"
vocabulary = 4
length = 12
test_length = 12
times = 3
[train]
steps = 5
batch = 8
lr = 1e-2
short_window = 2
eval_examples = 32
)";

Recipe recipe() { return parse_recipe(parse_toml(kRecipe, "test")); }

TEST(Probes, ValueWithOtherOptionsIsThatOfTheSameWeights) {
  Context context(1);
  Session session(recipe(), context);
  for (int i = 0; i < 5; ++i) session.step();
  // Behind the examples of validation, and of the task's own length.
  EXPECT_EQ(value_with(session, {}, {.examples = 64}, context), session.evaluate({.examples = 64, .first = 32}).value);
  Session longer(parse_recipe(parse_toml(kRecipe, "test"), {"task.test_length=40", "mixer.all.window=8"}), context);
  longer.parameters().assign(session.parameters().tensors());
  EXPECT_EQ(value_with(session, {"task.test_length=40", "mixer.all.window=8"}, {.examples = 64}, context),
            longer.evaluate({.examples = 64, .first = 32}).value);
}

TEST(Probes, SilencedLayersAddNothing) {
  Context context(1);
  Session session(recipe(), context);
  const std::vector<float> before(session.parameters().find("layers.0.mixer.o.weight").values().begin(),
                                  session.parameters().find("layers.0.mixer.o.weight").values().end());
  Session without(recipe(), context);
  without.parameters().assign(session.parameters().tensors());
  std::ranges::fill(without.parameters().find("layers.0.mixer.o.weight").values(), 0.0f);
  EXPECT_EQ(value_with(session, {}, {.examples = 64, .silenced = "mlstm"}, context),
            without.evaluate({.examples = 64, .first = 32}).value);
  EXPECT_TRUE(std::ranges::equal(before, session.parameters().find("layers.0.mixer.o.weight").values()));
  EXPECT_EQ(error_of([&] { (void)value_with(session, {}, {.silenced = "gla"}, context); }),
            "study: expected layers of gla to silence, got none");
}

TEST(Probes, TheGradientIsDividedBetweenKindsOfLayers) {
  Context context(1);
  Session session(recipe(), context);
  session.step();
  const double recurrent = gradient_share(session, "mlstm", context),
               attention = gradient_share(session, "sliding-window", context);
  EXPECT_GT(recurrent, 0);
  EXPECT_GT(attention, 0);
  EXPECT_NEAR(recurrent + attention, 1, 1e-12);
  EXPECT_EQ(gradient_share(session, "gla", context), 0);
}

}  // namespace
}  // namespace isomer::study

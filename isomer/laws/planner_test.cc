#include "isomer/laws/planner.h"

#include <gtest/gtest.h>

namespace isomer {
namespace {

constexpr ChunkCosts kCosts{.pair = 1, .state = 4, .edge = 18, .step = 10};

double cost(Index C, Index K, Index V) {
  return kCosts.pair * double(C * (K + V)) + (kCosts.state + kCosts.edge / double(C)) * double(K * V);
}

TEST(Planner, TakesTheChunkOfLeastCost) {
  for (Index K : {1, 16, 64, 128, 256})
    for (Index V : {1, 33, 64, 128, 256}) {
      const Index chosen = best_chunk(kCosts, K, V);
      EXPECT_EQ(chosen % 12, 0);
      // Rounded to twelve tokens about a flat minimum.
      for (Index C = 24; C <= 96; C += 12) EXPECT_LE(cost(chosen, K, V), 1.02 * cost(C, K, V)) << K << " " << V << " " << C;
    }
}

TEST(Planner, StepsOnlyWhatIsShort) {
  EXPECT_EQ(best_form(kCosts, 1, 64, 64, {}).form, Form::step);
  EXPECT_EQ(best_form(kCosts, 16, 64, 64, {}).form, Form::chunk);
  EXPECT_EQ(best_form(kCosts, 64, 64, 64, {}).form, Form::chunk);
  EXPECT_EQ(best_form(kCosts, 2048, 64, 64, {}).form, Form::chunk);
  EXPECT_EQ(best_form(kCosts, 1, 64, 64, {.tape = true}).form, Form::chunk);
  EXPECT_EQ(best_form(kCosts, 0, 64, 64, {}).form, best_form(kCosts, 1, 64, 64, {}).form);
}

TEST(Planner, LeavesOutAStateThatNobodyAsksFor) {
  EXPECT_EQ(best_form(kCosts, 1, 64, 64, {.state = false}).form, Form::parallel);
  EXPECT_EQ(best_form(kCosts, 64, 64, 64, {.state = false}).form, Form::parallel);
  EXPECT_EQ(best_form(kCosts, 64, 64, 64, {.state = false, .tape = true}).form, Form::chunk);
  EXPECT_EQ(best_form(kCosts, 2048, 64, 64, {.state = false}).form, Form::chunk);
}

TEST(Planner, LargerStatesWantLongerChunks) {
  EXPECT_LT(best_chunk(kCosts, 64, 64), best_chunk(kCosts, 256, 256));
  EXPECT_EQ(best_chunk(kCosts, 1, 1), 24);
  EXPECT_EQ(best_chunk(kCosts, 1 << 20, 1 << 20), 96);
}

}  // namespace
}  // namespace isomer

#include "isomer/nn/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "isomer/base/error.h"
#include "tests/error_of.h"

namespace isomer {
namespace {
using Kind = Schedule::Kind;

TEST(Schedule, WarmsUpFromTheFirstStep) {
  for (const Kind kind : {Kind::constant, Kind::cosine, Kind::linear, Kind::warmup_stable_decay}) {
    const Schedule s{.kind = kind, .steps = 100, .warmup = 4};
    EXPECT_EQ(factor(s, 0), 0.25);
    EXPECT_EQ(factor(s, 2), 0.75);
    EXPECT_EQ(factor(s, 3), 1.0);
    EXPECT_EQ(factor(s, 4), 1.0) << name_of(kind);
  }
}

TEST(Schedule, HasTheValuesOfItsEquation) {
  const Schedule linear{.kind = Kind::linear, .steps = 110, .warmup = 10, .final_fraction = 0.1};
  EXPECT_DOUBLE_EQ(factor(linear, 60), 0.55);
  EXPECT_DOUBLE_EQ(factor(linear, 109), 1 - 0.9 * 0.99);
  const Schedule cosine{.kind = Kind::cosine, .steps = 110, .warmup = 10, .final_fraction = 0.2};
  EXPECT_DOUBLE_EQ(factor(cosine, 60), 0.6);
  EXPECT_DOUBLE_EQ(factor(cosine, 35), 1 - 0.8 * (1 - std::sqrt(0.5)) / 2);
  const Schedule wsd{.kind = Kind::warmup_stable_decay, .steps = 200, .warmup = 10, .final_fraction = 0.5, .decay = 0.25};
  EXPECT_EQ(factor(wsd, 150), 1.0);
  EXPECT_DOUBLE_EQ(factor(wsd, 175), 0.75);
  EXPECT_EQ(factor({.kind = Kind::constant, .steps = 10}, 9), 1.0);
}

TEST(Schedule, StartsAtThePeakWithoutWarmUp) {
  for (const Kind kind : {Kind::constant, Kind::cosine, Kind::linear, Kind::warmup_stable_decay})
    EXPECT_EQ(factor({.kind = kind, .steps = 10}, 0), 1.0) << name_of(kind);
}

TEST(Schedule, StaysAtTheEndBeyondIt) {
  for (const Kind kind : {Kind::cosine, Kind::linear, Kind::warmup_stable_decay})
    for (const Index step : {10, 11, 1'000'000'000})
      EXPECT_DOUBLE_EQ(factor({.kind = kind, .steps = 10, .warmup = 3, .final_fraction = 0.125}, step), 0.125) << name_of(kind);
}

TEST(Schedule, OfWarmUpOnlyOrOfNoStepsIsDefined) {
  EXPECT_EQ(factor({.kind = Kind::cosine, .steps = 5, .warmup = 5}, 4), 1.0);
  EXPECT_EQ(factor({.kind = Kind::linear, .steps = 5, .warmup = 5, .final_fraction = 0.5}, 5), 0.5);
  EXPECT_EQ(factor({.kind = Kind::linear, .steps = 0}, 0), 0.0);
  // No decay at all: the end is a step down. All of it: the decay begins behind the warm-up.
  EXPECT_EQ(factor({.kind = Kind::warmup_stable_decay, .steps = 10, .decay = 0}, 9), 1.0);
  EXPECT_EQ(factor({.kind = Kind::warmup_stable_decay, .steps = 10, .warmup = 4, .decay = 1}, 4), 1.0);
}

TEST(Schedule, NeverRisesAfterTheWarmUp) {
  for (const Kind kind : {Kind::constant, Kind::cosine, Kind::linear, Kind::warmup_stable_decay})
    for (Index step = 7; step < 60; ++step) {
      const Schedule s{.kind = kind, .steps = 50, .warmup = 7, .final_fraction = 0.01};
      EXPECT_LE(factor(s, step + 1), factor(s, step)) << name_of(kind) << " " << step;
    }
}

TEST(Schedule, HasNames) {
  for (const Kind kind : {Kind::constant, Kind::cosine, Kind::linear, Kind::warmup_stable_decay})
    EXPECT_EQ(schedule_named(name_of(kind)), kind);
  EXPECT_EQ(tests::error_of([] { (void)schedule_named("cosin"); }),
            "schedule: expected constant, cosine, linear or warmup-stable-decay, got cosin, did you mean cosine?");
}

TEST(Schedule, RefusesNumbersThatMakeNone) {
  EXPECT_NO_THROW(check({.steps = 10, .warmup = 10}));
  EXPECT_THROW(check({.steps = -1}), Error);
  EXPECT_THROW(check({.steps = 10, .warmup = 11}), Error);
  EXPECT_THROW(check({.steps = 10, .warmup = -1}), Error);
  EXPECT_THROW(check({.steps = 10, .final_fraction = 1.5}), Error);
  EXPECT_THROW(check({.steps = 10, .decay = -0.1}), Error);
}

}  // namespace
}  // namespace isomer

// Every rule on planted data that hold, fail and leave it open.
#include "isomer/study/rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "isomer/base/rng.h"
#include "tests/error_of.h"

namespace isomer::study {
namespace {

using tests::error_of;
using Values = std::vector<double>;

Evidence planted(std::initializer_list<std::pair<const char*, Values>> quantities) {
  Evidence found;
  for (const auto& [name, values] : quantities)
    for (const double value : values) found.add(name, value);
  return found;
}

/// A series whose seeds are given one after the other.
Evidence line(std::initializer_list<double> xs, std::initializer_list<Values> seeds) {
  Evidence found;
  for (const Values& ys : seeds) {
    std::size_t i = 0;
    for (const double x : xs) found.add("line", x, ys[i++]);
  }
  return found;
}

Verdict decide(const Rule& rule, const Evidence& found) { return rule.decide(found).verdict; }

// What docs/study.md says of it: the interval of few seeds holds the mean of all less often than 95 times in 100.
TEST(Bootstrap, OfFewSeedsCoversLessThanItsName) {
  const auto share = [](int seeds, int trials) {
    Rng rng{5, std::uint64_t(seeds)};
    int held = 0;
    for (int trial = 0; trial < trials; ++trial) {
      Values values;
      for (int i = 0; i < seeds; ++i) values.push_back(rng.normal());
      const Interval x = bootstrap(values);
      held += x.low <= 0 && 0 <= x.high ? 1 : 0;
    }
    return double(held) / trials;
  };
  const double three = share(3, 20000), five = share(5, 600);
  std::printf("the interval of 3 seeds holds the mean %.0f times in 100, of 5 %.0f times\n", 100 * three, 100 * five);
  EXPECT_NEAR(three, 0.75, 0.01);
  EXPECT_NEAR(five, 0.84, 0.04);
}

TEST(Bootstrap, OneSeedSaysNothingAndThreeSayTheirRange) {
  const Interval one = bootstrap(Values{0.5});
  EXPECT_EQ(one.mean, 0.5);
  EXPECT_TRUE(std::isinf(one.low) && std::isinf(one.high));
  const Interval three = bootstrap(Values{1, 2, 6});
  EXPECT_EQ(three.mean, 3);
  EXPECT_EQ(three.low, 1);
  EXPECT_EQ(three.high, 6);
  EXPECT_EQ(three.n, 3);
}

TEST(Bootstrap, ManyValuesGiveTheStandardErrorsInterval) {
  Values values;
  for (int i = 0; i < 100; ++i) values.push_back(i % 2 == 0 ? 1 : -1);
  const Interval x = bootstrap(values);
  EXPECT_NEAR(x.low, -0.196, 0.03);
  EXPECT_NEAR(x.high, 0.196, 0.03);
  const Interval again = bootstrap(values);
  EXPECT_EQ(x.low, again.low) << "the same numbers give the same interval";
}

TEST(Bootstrap, ARunThatDivergedReachesIntoTheInterval) {
  const Interval x = bootstrap(Values{1, 2, 3, 4, std::numeric_limits<double>::infinity()});
  EXPECT_EQ(x.low, 1);
  EXPECT_TRUE(std::isinf(x.high));
}

TEST(LogSlope, OfAPower) {
  const Values x{1, 2, 4, 8}, y{3, 1.5, 0.75, 0.375};
  EXPECT_NEAR(log_slope(x, y), -1, 1e-12);
  EXPECT_TRUE(std::isnan(log_slope(x, Values{1, 0, 1, 1})));
}

TEST(Rules, AtMostAndAtLeast) {
  const Evidence found = planted({{"error", {0.1, 0.2, 0.3}}});
  EXPECT_EQ(decide(at_most("error", 0.35), found), Verdict::holds);
  EXPECT_EQ(decide(at_most("error", 0.05), found), Verdict::fails);
  EXPECT_EQ(decide(at_most("error", 0.25), found), Verdict::undecided);
  EXPECT_EQ(decide(at_least("error", 0.1), found), Verdict::holds);
  EXPECT_EQ(decide(at_least("error", 0.4), found), Verdict::fails);
  EXPECT_EQ(decide(at_least("error", 0.2), found), Verdict::undecided);
}

TEST(Rules, AValueWithABoundNeedsNoSeeds) {
  Evidence found;
  found.put("error", 1e-13, 1e-14);
  EXPECT_EQ(decide(at_most("error", 1e-12), found), Verdict::holds);
  EXPECT_EQ(decide(at_most("error", 1.05e-13), found), Verdict::undecided);
  EXPECT_EQ(decide(at_most("error", 1e-14), found), Verdict::fails);
}

TEST(Rules, OneRunIsNeverEnough) {
  const Evidence found = planted({{"a", {1}}, {"b", {0}}});
  EXPECT_EQ(decide(greater("a", "b", 0.1), found), Verdict::undecided);
  EXPECT_EQ(decide(at_least("a", 0.5), found), Verdict::undecided);
}

TEST(Rules, Greater) {
  EXPECT_EQ(decide(greater("a", "b", 0.1), planted({{"a", {0.9, 0.8, 0.9}}, {"b", {0.2, 0.1, 0.3}}})), Verdict::holds);
  EXPECT_EQ(decide(greater("a", "b", 0.1), planted({{"a", {0.2, 0.1, 0.3}}, {"b", {0.9, 0.8, 0.9}}})), Verdict::fails);
  EXPECT_EQ(decide(greater("a", "b", 0.1), planted({{"a", {0.9, 0.2, 0.9}}, {"b", {0.5, 0.5, 0.5}}})), Verdict::undecided);
  // What varies from seed to seed alike is no difference: the seeds are paired.
  EXPECT_EQ(decide(greater("a", "b", 0.1), planted({{"a", {0.3, 0.6, 0.9}}, {"b", {0.1, 0.4, 0.7}}})), Verdict::holds);
}

TEST(Rules, GreaterWhereARunDiverged) {
  const double lost = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(decide(greater("a", "b", 0), planted({{"a", {lost, lost, lost}}, {"b", {0.5, 0.5, 0.5}}})), Verdict::fails);
  EXPECT_EQ(decide(greater("a", "b", 0), planted({{"a", {lost, 1, 1}}, {"b", {0.5, 0.5, 0.5}}})), Verdict::undecided);
  EXPECT_EQ(decide(greater("a", "b", 0), planted({{"a", {lost, lost, lost}}, {"b", {lost, lost, lost}}})), Verdict::undecided);
}

TEST(Rules, Equal) {
  EXPECT_EQ(decide(equal("a", "b", 0.1), planted({{"a", {1, 2, 3}}, {"b", {1.05, 2, 2.95}}})), Verdict::holds);
  EXPECT_EQ(decide(equal("a", "b", 0.1), planted({{"a", {1, 2, 3}}, {"b", {2, 3, 4}}})), Verdict::fails);
  EXPECT_EQ(decide(equal("a", "b", 0.1), planted({{"a", {1, 2, 3}}, {"b", {1, 2, 4}}})), Verdict::undecided);
}

TEST(Rules, Slope) {
  const auto power = [](double exponent, double noise) {
    Evidence found;
    for (int seed = 0; seed < 3; ++seed)
      for (const double x : {16.0, 64.0, 256.0}) found.add("line", x, std::pow(x, exponent + noise * (seed - 1)));
    return found;
  };
  EXPECT_EQ(decide(slope("line", -1.1, -0.9), power(-1, 0.02)), Verdict::holds);
  EXPECT_EQ(decide(slope("line", -1.1, -0.9), power(-0.5, 0.02)), Verdict::fails);
  EXPECT_EQ(decide(slope("line", -1.1, -0.9), power(-1, 0.2)), Verdict::undecided);
}

TEST(Rules, Monotone) {
  EXPECT_EQ(decide(monotone("line", Trend::falling, 0), line({2, 4, 8}, {{3, 2, 1}, {3.5, 2, 1}, {3, 2.5, 1}})), Verdict::holds);
  EXPECT_EQ(decide(monotone("line", Trend::falling, 0), line({2, 4, 8}, {{3, 2, 4}, {3, 2, 4}, {3, 2, 4}})), Verdict::fails);
  EXPECT_EQ(decide(monotone("line", Trend::falling, 0), line({2, 4, 8}, {{3, 2, 1}, {3, 2, 3}, {3, 2, 1}})), Verdict::undecided);
  EXPECT_EQ(decide(monotone("line", Trend::rising, 0.6), line({2, 4, 8}, {{1, 0.5, 2}, {1, 0.5, 2}})), Verdict::holds);
}

TEST(Rules, JumpIsWhereItWasSaidToBe) {
  const Rule rule = jump("line", 8, 0.4);
  EXPECT_EQ(decide(rule, line({2, 4, 8, 16}, {{0.1, 0.2, 0.9, 1}, {0.1, 0.1, 0.8, 1}, {0, 0.1, 0.9, 1}})), Verdict::holds);
  EXPECT_EQ(decide(rule, line({2, 4, 8, 16}, {{0.1, 0.9, 0.9, 1}, {0.1, 0.8, 0.9, 1}, {0, 0.9, 1, 1}})), Verdict::fails);
  EXPECT_EQ(decide(rule, line({2, 4, 8, 16}, {{0.1, 0.2, 0.9, 1}, {0.1, 0.9, 0.9, 1}, {0, 0.1, 0.9, 1}})), Verdict::undecided);
  // Large enough, but another step is larger.
  EXPECT_EQ(decide(jump("line", 8, 0.1), line({2, 4, 8}, {{0, 0.7, 0.9}, {0, 0.7, 0.9}})), Verdict::fails);
  EXPECT_EQ(error_of([&] {
              (void)jump("line", 1, 0).decide(line({2, 4}, {{0, 1}}));
            }),
            "study: expected points of line on both sides of 1");
}

TEST(Rules, Ordering) {
  const Rule rule = ordering({"a", "b", "c"}, 0.05);
  EXPECT_EQ(decide(rule, planted({{"a", {3, 3, 3}}, {"b", {2, 2, 3.04}}, {"c", {1, 1, 1}}})), Verdict::holds);
  EXPECT_EQ(decide(rule, planted({{"a", {3, 3, 3}}, {"b", {2, 2, 2}}, {"c", {4, 4, 4}}})), Verdict::fails);
  EXPECT_EQ(decide(rule, planted({{"a", {3, 3, 3}}, {"b", {2, 4, 2}}, {"c", {1, 1, 1}}})), Verdict::undecided);
}

TEST(Rules, AModelThatWasStillLearningIsNotHeldBackByIt) {
  Evidence found = planted({{"a", {0.9, 0.8, 0.9}}, {"b", {0.2, 0.1, 0.3}}});
  EXPECT_EQ(decide(greater("a", "b", 0.1), found), Verdict::holds);
  found.may_reach("a", 1);  // the better of the two: it holds all the more
  EXPECT_EQ(decide(greater("a", "b", 0.1), found), Verdict::holds);
  EXPECT_EQ(decide(equal("a", "b", 0.1), found), Verdict::fails);
  found.may_reach("b", 1);
  EXPECT_EQ(decide(greater("a", "b", 0.1), found), Verdict::undecided);
  EXPECT_EQ(decide(equal("a", "b", 0.1), found), Verdict::undecided);
  EXPECT_EQ(decide(at_most("b", 0.5), found), Verdict::undecided);
  EXPECT_EQ(decide(at_least("b", 0.1), found), Verdict::holds);
}

TEST(Rules, APointThatWasStillLearningLeavesAJumpOpen) {
  const Rule rule = jump("line", 8, 0.4);
  Evidence found = line({2, 4, 8, 16}, {{0.1, 0.2, 0.9, 1}, {0.1, 0.1, 0.8, 1}, {0, 0.1, 0.9, 1}});
  found.may_reach("line", 8, 1);
  EXPECT_EQ(decide(rule, found), Verdict::holds);
  EXPECT_EQ(decide(monotone("line", Trend::rising, 0.1), found), Verdict::holds);
  found.may_reach("line", 4, 1);
  EXPECT_EQ(decide(rule, found), Verdict::undecided);
  EXPECT_EQ(decide(monotone("line", Trend::rising, 0), found), Verdict::undecided);
  EXPECT_EQ(decide(slope("line", 0.1, 10), found), Verdict::undecided);
}

TEST(Rules, AllOfIsAsWeakAsItsWeakestAndSaysWhich) {
  const Evidence found = planted({{"a", {3, 3, 3}}, {"b", {2, 4, 2}}});
  const Rule holds = at_least("a", 2), open = at_least("b", 3), fails = at_most("a", 1);
  EXPECT_EQ(decide(all_of({holds, holds}), found), Verdict::holds);
  EXPECT_EQ(decide(all_of({holds, open}), found), Verdict::undecided);
  EXPECT_EQ(all_of({open, fails, holds}).decide(found).why, "a is 3");
  EXPECT_EQ(decide(all_of({open, fails, holds}), found), Verdict::fails);
  EXPECT_EQ(all_of({holds, open}).text, "a is at least 2; b is at least 3");
}

TEST(Rules, AskForWhatNobodyMeasured) {
  EXPECT_EQ(error_of([] { (void)at_most("x", 1).decide({}); }), "study: expected the quantity x to have been measured");
}

}  // namespace
}  // namespace isomer::study

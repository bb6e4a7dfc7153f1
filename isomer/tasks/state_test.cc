// The statistics of tasks that ask for a state: parity and word problems.
#include <algorithm>
#include <cmath>
#include <set>

#include "isomer/tasks/groups.h"
#include "isomer/tasks/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

TEST(Groups, ObeyTheLaws) {
  for (const auto& [name, order, abelian] : {std::tuple{"Z2", 2, true},
                                             {"Z60", 60, true},
                                             {"S2", 2, true},
                                             {"A3", 3, true},
                                             {"S3", 6, false},
                                             {"A4", 12, false},
                                             {"A5", 60, false},
                                             {"S5", 120, false},
                                             {"A4xZ5", 60, false},
                                             {"Z2xZ2xZ3", 12, true}}) {
    const Group g = group_named(name);
    ASSERT_EQ(g.order, order) << name;
    bool commutes = true;
    for (Index a = 0; a < order; ++a) {
      EXPECT_EQ(g.product(0, a), a);
      EXPECT_EQ(g.product(a, 0), a);
      std::set<int> row;
      for (Index b = 0; b < order; ++b) {
        row.insert(g.product(a, b));
        commutes = commutes && g.product(a, b) == g.product(b, a);
        const Index c = (7 * a + 3 * b + 1) % order;
        EXPECT_EQ(g.product(g.product(a, b), c), g.product(a, g.product(b, c)));
      }
      EXPECT_EQ(Index(row.size()), order);
    }
    EXPECT_EQ(commutes, abelian) << name;
    EXPECT_EQ(std::set(g.names.begin(), g.names.end()).size(), std::size_t(order));
  }
  EXPECT_EQ(group_named("S3").names[std::size_t(group_named("S3").product(1, 2))], "(123)");  // (23), then (12)
}

TEST(Groups, RefuseOtherNames) {
  for (const char* name : {"", "Z", "S1", "S7", "A2", "Q8", "Z2x", "Z2 xZ3", "Z-3", "Z1025"})
    EXPECT_THROW((void)group_named(name), Error) << name;
  EXPECT_EQ(tests::error_of([] { (void)group_named("S5xS4"); }), "group: expected at most 1024 elements, got 2880");
}

TEST(WordProblem, LabelsEveryPrefixWithItsProduct) {
  for (const char* name : {"Z2", "S3", "A5", "S5", "A4xZ5"}) {
    const Group g = group_named(name);
    const auto task = make_task("word-problem", {{"group", name}, {"length", "40"}, {"test_length", "90"}});
    for (Split split : {Split::train, Split::test})
      each_example(*task, split, 20, [&](const Batch& batch) {
        ASSERT_EQ(batch.T, split == Split::train ? 41 : 91);
        EXPECT_EQ(batch.tokens[0], g.order);
        EXPECT_EQ(batch.labels[0], kIgnored);
        Index product = 0;
        for (std::size_t t = 1; t < batch.tokens.size(); ++t) {
          product = g.product(product, batch.tokens[t]);
          EXPECT_EQ(batch.labels[t], product);
        }
      });
  }
}

TEST(WordProblem, DrawsElementsEvenly) {
  const auto task = make_task("word-problem", {{"group", "S3"}});
  std::vector<double> times(6), labels(6);
  each_example(*task, Split::train, 500, [&](const Batch& batch) {
    for (std::size_t t = 1; t < batch.tokens.size(); ++t) {
      ++times[std::size_t(batch.tokens[t])];
      ++labels[std::size_t(batch.labels[t])];
    }
  });
  for (double n : times) expect_share(n, 500 * 128, 1.0 / 6);
  for (double n : labels) expect_share(n, 500 * 128, 1.0 / 6);
}

TEST(WordProblem, LimitsMovesAndSpacesElements) {
  const auto task = make_task("word-problem", {{"group", "S5"}, {"moves", "2"}, {"length", "30"}, {"spacing", "3"}});
  const Group g = group_named("S5");
  std::set<std::int64_t> seen;
  each_example(*task, Split::train, 50, [&](const Batch& batch) {
    ASSERT_EQ(batch.T, 91);
    Index product = 0;
    for (std::size_t t = 1; t < 91; ++t) {
      const bool element = t % 3 == 1;
      EXPECT_EQ(batch.tokens[t] == 121, !element);
      if (element) {
        seen.insert(batch.tokens[t]);
        product = g.product(product, batch.tokens[t]);
      }
      EXPECT_EQ(batch.labels[t], t % 3 == 0 ? product : kIgnored);
    }
  });
  EXPECT_EQ(seen.size(), 11U);  // the identity and ten swaps
  for (std::int64_t element : seen) EXPECT_LE(g.moved[std::size_t(element)], 2);
}

// 2^12 sequences of parity, tens of thousands of draws: nearly all are seen, none in both.
TEST(WordProblem, NeverTestsWhatItTrained) {
  const auto task =
      make_task("word-problem",
                {{"group", "S2"}, {"length", "12"}, {"test_length", "12"}, {"train_examples", "0"}, {"test_examples", "0"}});
  std::set<std::vector<std::int64_t>> train, test;
  each_example(*task, Split::train, 40000, [&](const Batch& batch) { train.insert(batch.tokens); });
  each_example(*task, Split::test, 5000, [&](const Batch& batch) { test.insert(batch.tokens); });
  EXPECT_GT(train.size() + test.size(), 4080U);
  EXPECT_NEAR(double(test.size()), 256, 80);
  for (const auto& tokens : test) EXPECT_FALSE(train.contains(tokens));
  EXPECT_EQ(
      error_of("word-problem", {{"group", "S2"}, {"test_length", "9"}}),
      "word-problem: expected a test_length of at least 10 for 2 elements, so that some sequences are kept for the test, got 9");
  EXPECT_EQ(error_of("word-problem", {{"group", "A5"}, {"moves", "2"}}),
            "word-problem: expected elements that move at most 2 points, got the identity alone");
}

TEST(Parity, IsThatOfAllBits) {
  const auto last = make_task("parity"), every = make_task("parity", {{"labels", "every"}});
  for (Split split : {Split::train, Split::test}) {
    std::set<Index> lengths;
    double odd = 0;
    each_example(*last, split, 2000, [&](const Batch& batch) {
      lengths.insert(batch.T);
      std::int64_t ones = 0;
      for (std::int64_t token : batch.tokens) ones += token == 2 ? 1 : 0;
      EXPECT_EQ(batch.labels.back(), 1 + ones % 2);
      EXPECT_EQ(std::count(batch.labels.begin(), batch.labels.end(), kIgnored), batch.T - 1);
      odd += double(ones % 2);
    });
    EXPECT_EQ(*lengths.begin(), split == Split::train ? 3 : 40);
    EXPECT_EQ(*lengths.rbegin(), split == Split::train ? 40 : 256);
    EXPECT_NEAR(odd / 2000, 0.5, 0.06);
  }
  each_example(*every, Split::train, 50, [](const Batch& batch) {
    std::int64_t parity = 0;
    for (std::size_t t = 0; t < batch.tokens.size(); ++t) EXPECT_EQ(batch.labels[t], 1 + (parity ^= batch.tokens[t] - 1));
  });
  EXPECT_EQ(error_of("parity", {{"shortest", "50"}}), "parity: expected shortest ≤ longest, got 50 and 40");
  EXPECT_EQ(error_of("parity", {{"test_shortest", "3"}}),
            "parity: expected a test_shortest of at least 10, so that some sequences are kept for the test, got 3");
}

}  // namespace
}  // namespace isomer

// The statistics of tasks that ask for something seen before.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "isomer/tasks/testing.h"

namespace isomer {
namespace {

/// One sequence is as the definition of MQAR says.
void expect_mqar(const Batch& batch, Index pairs, Index vocabulary, bool zero_filler) {
  const Index T = batch.T;
  std::map<std::int64_t, std::int64_t> value_of;
  std::set<std::int64_t> values;
  for (Index n = 0; n < pairs; ++n) {
    const std::int64_t key = batch.tokens[std::size_t(2 * n)], value = batch.tokens[std::size_t(2 * n + 1)];
    EXPECT_TRUE(key >= 1 && key < vocabulary / 2);
    EXPECT_TRUE(value >= vocabulary / 2 && value < vocabulary);
    value_of[key] = value;
    values.insert(value);
  }
  EXPECT_EQ(Index(value_of.size()), pairs);
  EXPECT_EQ(Index(values.size()), pairs);
  std::set<std::int64_t> asked;
  for (Index t = 0; t < T; ++t) {
    const std::int64_t token = batch.tokens[std::size_t(t)], label = batch.labels[std::size_t(t)];
    if (label == kIgnored) {
      EXPECT_TRUE(t < 2 * pairs || !zero_filler || token == 0);
      continue;
    }
    EXPECT_TRUE(t >= 2 * pairs && t % 2 == 0) << t;
    EXPECT_EQ(label, value_of.at(token));
    EXPECT_TRUE(asked.insert(token).second);
  }
  EXPECT_EQ(Index(asked.size()), pairs);
}

TEST(Mqar, AsksEachKeyOnceAfterThePairs) {
  for (const auto& [length, pairs, filler] :
       {std::tuple{64, 4, "zero"}, {64, 16, "random"}, {128, 8, "zero"}, {512, 64, "random"}}) {
    const auto task =
        make_task("mqar", {{"length", std::to_string(length)}, {"pairs", std::to_string(pairs)}, {"filler", filler}});
    each_example(*task, Split::train, 50,
                 [&, n = pairs, zero = std::string(filler) == "zero"](const Batch& batch) { expect_mqar(batch, n, 8192, zero); });
  }
}

// With one pair the slot is drawn with probability ∝ i^(a−1).
TEST(Mqar, DrawsSlotsByAPowerLaw) {
  for (const char* power : {"0.01", "0.5", "1"}) {
    const auto task = make_task("mqar", {{"length", "32"}, {"pairs", "1"}, {"power", power}, {"train_examples", "0"}});
    constexpr int kTrials = 20000, kSlots = 15;
    std::vector<int> times(kSlots);
    each_example(*task, Split::train, kTrials, [&](const Batch& batch) {
      for (std::size_t t = 2; t < 32; t += 2) times[(t - 2) / 2] += batch.labels[t] != kIgnored ? 1 : 0;
    });
    double sum = 0;
    for (int i = 1; i <= kSlots; ++i) sum += std::pow(i, std::stod(power) - 1);
    for (int i = 1; i <= kSlots; ++i)
      expect_share(times[std::size_t(i - 1)], kTrials, std::pow(i, std::stod(power) - 1) / sum, "slot " + std::to_string(i));
  }
}

// With several, the first pair's slot still follows the law, and the second's the law among the slots left.
TEST(Mqar, DrawsSlotsOneAfterTheOther) {
  const auto task =
      make_task("mqar", {{"length", "12"}, {"pairs", "2"}, {"power", "0"}, {"vocabulary", "16"}, {"train_examples", "0"}});
  constexpr int kTrials = 40000;
  std::map<std::pair<int, int>, int> times;
  each_example(*task, Split::train, kTrials, [&](const Batch& batch) {
    int first = 0, second = 0;
    for (int slot = 1; slot <= 4; ++slot) {
      const std::size_t t = std::size_t(4 + 2 * (slot - 1));
      if (batch.labels[t] == batch.tokens[1]) first = slot;
      if (batch.labels[t] == batch.tokens[3]) second = slot;
    }
    ++times[{first, second}];
  });
  const double all = 1 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4;
  for (int a = 1; a <= 4; ++a)
    for (int b = 1; b <= 4; ++b)
      if (a != b) expect_share(times[{a, b}], kTrials, (1.0 / a) / all * (1.0 / b) / (all - 1.0 / a));
}

TEST(Mqar, RandomFillerIsUniformOverTheVocabulary) {
  const auto task = make_task("mqar", {{"length", "64"}, {"vocabulary", "66"}, {"filler", "random"}});
  std::vector<double> times(66);
  double all = 0;
  each_example(*task, Split::train, 2000, [&](const Batch& batch) {
    for (std::size_t t = 8; t < 64; ++t) {
      if (batch.labels[t] != kIgnored) continue;
      ++times[std::size_t(batch.tokens[t])];
      ++all;
    }
  });
  for (double n : times) expect_share(n, all, 1.0 / 66);
}

TEST(Mqar, RefusesWhatDoesNotFit) {
  EXPECT_EQ(error_of("mqar", {{"length", "64"}, {"pairs", "17"}}), "mqar: expected a length of at least 4 × pairs = 68, got 64");
  EXPECT_EQ(error_of("mqar", {{"length", "63"}}), "mqar: expected an even length, got 63");
  EXPECT_EQ(error_of("mqar", {{"vocabulary", "64"}}), "mqar: expected a vocabulary larger than the length of 64, got 64");
  EXPECT_EQ(error_of("mqar", {{"pairs", "0"}}), "mqar: expected pairs from 1 to 16384, got 0");
  EXPECT_EQ(error_of("mqar", {{"power", "2"}}), "mqar: expected power from 0 to 1, got 2");
}

TEST(MqarBased, MixesItsLengthsInTheSharesOfTheSource) {
  const auto task = make_task("mqar-based");
  std::map<std::pair<Index, Index>, int> train, test;
  const auto look = [](std::map<std::pair<Index, Index>, int>& seen, const Batch& batch, Index step) {
    const Index pairs = std::count_if(batch.labels.begin(), batch.labels.end(), [](std::int64_t x) { return x != kIgnored; });
    seen[{batch.T, pairs / batch.B}] += int(step);
    if (batch.B == 1) expect_mqar(batch, pairs, 8192, true);
  };
  Batch batch;
  for (std::uint64_t i = 0; i < 180000; i += 256) {
    task->fill(Split::train, i, 2, batch);
    look(train, batch, 1);
  }
  // 703 blocks: five in nine are short.
  EXPECT_EQ(train.size(), 5U);
  EXPECT_NEAR((train[{64, 4}]), 703 * 5.0 / 9, 3);
  for (const auto& rest : {std::pair<Index, Index>{128, 8}, {256, 16}, {256, 32}, {256, 64}})
    EXPECT_NEAR(train[rest], 703 / 9.0, 3);
  for (std::uint64_t i = 0; i < 7000; i += 100) {
    task->fill(Split::test, i, 1, batch);
    look(test, batch, 1);
  }
  const std::map<std::pair<Index, Index>, int> want{{{64, 4}, 10},   {{64, 8}, 10},    {{64, 16}, 10},   {{128, 32}, 10},
                                                    {{256, 64}, 10}, {{512, 128}, 10}, {{1024, 256}, 10}};
  EXPECT_EQ(test, want);
}

TEST(MqarBased, PadsAMixedBatch) {
  const auto task = make_task("mqar-based");
  Batch batch, one;
  task->fill(Split::test, 2999, 2, batch);
  EXPECT_EQ(batch.T, 128);
  EXPECT_EQ(batch.lengths, (std::vector<Index>{64, 128}));
  task->fill(Split::test, 2999, 1, one);
  for (std::size_t t = 0; t < 128; ++t) {
    EXPECT_EQ(batch.tokens[t], t < 64 ? one.tokens[t] : 0);
    EXPECT_EQ(batch.labels[t], t < 64 ? one.labels[t] : kIgnored);
  }
}

constexpr std::int64_t kBegin = 26, kBar = 27, kEnd = 28;

TEST(Copying, LabelsWhatFollowsTheBar) {
  const auto task = make_task("copying");
  std::map<Index, int> lengths;
  each_example(*task, Split::train, 300, [&](const Batch& batch) {
    ASSERT_EQ(batch.T, 420);
    std::size_t t = 0;
    while (t < 420) {
      ASSERT_EQ(batch.tokens[t], kBegin);
      const auto bar =
          std::size_t(std::find(batch.tokens.begin() + std::ptrdiff_t(t), batch.tokens.end(), kBar) - batch.tokens.begin());
      const std::size_t n = bar - t - 1, end = t + 2 * n + 2;  // where the end mark stands
      const bool whole = bar < 420 && end <= 420;
      for (std::size_t i = t; i < std::min<std::size_t>(end, 420); ++i) {
        const std::int64_t want = !whole || i < bar ? kIgnored : i + 1 == end ? kEnd : batch.tokens[t + 1 + i - bar];
        EXPECT_EQ(batch.labels[i], want);
      }
      if (!whole) break;
      ++lengths[Index(n)];
      EXPECT_TRUE(end == 420 || batch.tokens[end] == kEnd);
      t = end + 1;
    }
  });
  EXPECT_EQ(lengths.begin()->first, 2);
  EXPECT_EQ(lengths.rbegin()->first, 64);
  EXPECT_EQ(lengths.size(), 63U);
}

TEST(Copying, TestsOneStringOfOneLength) {
  const auto task = make_task("copying", {{"test_length", "511"}});
  each_example(*task, Split::test, 3, [](const Batch& batch) {
    ASSERT_EQ(batch.T, 2 * 511 + 2);
    EXPECT_EQ(batch.tokens[512], kBar);
    for (std::size_t i = 0; i < 511; ++i) {
      EXPECT_EQ(batch.labels[512 + i], batch.tokens[1 + i]);
      EXPECT_EQ(batch.labels[i], kIgnored);
    }
    EXPECT_EQ(batch.labels.back(), kEnd);
  });
}

/// The strings of a batch's first example, as text.
std::string text_of(const Task& task, const std::vector<std::int64_t>& tokens) {
  std::string text;
  for (std::int64_t token : tokens) text += task.spell(token);
  return text;
}

TEST(Copying, LooksUpWhatFollowsAnNgram) {
  for (const std::string variant : {"prefix", "suffix"}) {
    const auto task = make_task("copying", {{"variant", variant}, {"ngram", "2"}, {"shortest", "3"}, {"test_length", "20"}});
    each_example(*task, Split::test, 200, [&](const Batch& batch) {
      const std::string text = text_of(*task, batch.tokens);
      std::vector<std::int64_t> asked;
      for (std::int64_t label : batch.labels)
        if (label != kIgnored) asked.push_back(label);
      const std::size_t bar = text.find('|');
      const std::string s = variant == "prefix" ? text.substr(bar + 1, 20) : text.substr(1, 20);
      const std::string gram = variant == "prefix" ? text.substr(1, 2) : text.substr(bar + 1, 2);
      const std::size_t at = s.find(gram);
      ASSERT_NE(at, std::string::npos) << text;
      EXPECT_EQ(s.find(gram, at + 1), std::string::npos) << text;
      EXPECT_EQ(text_of(*task, asked), s.substr(at + 2) + ".") << text;
      EXPECT_GE(asked.size(), 2U);
    });
  }
}

TEST(Copying, RefusesWhatDoesNotFit) {
  EXPECT_EQ(error_of("copying", {{"shortest", "65"}}), "copying: expected shortest ≤ longest, got 65 and 64");
  EXPECT_EQ(error_of("copying", {{"variant", "suffix"}}), "copying: expected strings longer than the n-gram of 3, got 2 letters");
  EXPECT_EQ(error_of("copying", {{"context", "100"}}),
            "copying: expected a context of at least one string of 131 tokens, got 100");
}

}  // namespace
}  // namespace isomer

// The six MAD tasks, as their source defines them.
#include <algorithm>
#include <map>
#include <set>

#include "isomer/tasks/testing.h"

namespace isomer {
namespace {

/// Every label of training is the next token.
void expect_next_tokens(const Batch& batch) {
  for (std::size_t t = 0; t + 1 < batch.tokens.size(); ++t) EXPECT_EQ(batch.labels[t], batch.tokens[t + 1]);
  EXPECT_NE(batch.labels.back(), kIgnored);
}

TEST(MadRecall, AsksForValuesOfKnownKeys) {
  const auto task = make_task("mad-recall");
  std::vector<double> keys(8);
  each_example(*task, Split::train, 20, expect_next_tokens);
  each_example(*task, Split::test, 300, [&](const Batch& batch) {
    ASSERT_EQ(batch.T, 127);
    std::map<std::int64_t, std::int64_t> value_of;
    for (std::size_t t = 0; t < 127; t += 2) {
      const std::int64_t key = batch.tokens[t], value = t + 1 < 127 ? batch.tokens[t + 1] : batch.labels[t];
      EXPECT_TRUE(key < 8 && value >= 8 && value < 16);
      const bool known = value_of.contains(key);
      EXPECT_EQ(batch.labels[t], known ? value : kIgnored);
      EXPECT_TRUE(!known || value_of[key] == value);
      EXPECT_TRUE(t + 1 == 127 || batch.labels[t + 1] == kIgnored);
      value_of[key] = value;
      if (t < 126) ++keys[std::size_t(key)];
    }
    EXPECT_NE(batch.labels.back(), kIgnored);
  });
  for (double n : keys) expect_share(n, 300 * 63, 1.0 / 8);
}

TEST(MadNoisy, ReplacesAShareOfPairsByNoise) {
  const auto task = make_task("mad-noisy");
  double noise = 0;
  each_example(*task, Split::test, 400, [&](const Batch& batch) {
    std::set<std::int64_t> known;
    for (std::size_t t = 0; t < 127; t += 2) {
      const std::int64_t key = batch.tokens[t];
      EXPECT_TRUE(key < 8 || key >= 16);
      if (key >= 16) {
        ++noise;
        EXPECT_TRUE(t < 126 && batch.tokens[t + 1] >= 16 && batch.labels[t] == kIgnored);
      } else {
        EXPECT_EQ(batch.labels[t] != kIgnored, known.contains(key));
        known.insert(key);
      }
    }
    EXPECT_TRUE(known.contains(batch.tokens[126]));
  });
  // One of the 63 pairs before the last is never noise.
  expect_share(noise, 400 * 63, 0.2 * 62 / 63);
  const auto loud = make_task("mad-noisy", {{"noise", "0.99"}, {"length", "8"}});
  each_example(*loud, Split::test, 200, [](const Batch& batch) { EXPECT_NE(batch.labels.back(), kIgnored); });
  EXPECT_EQ(error_of("mad-noisy", {{"noise_symbols", "30"}}),
            "mad-noisy: expected a vocabulary with at least 4 symbols beside the noise, got 2");
  EXPECT_EQ(error_of("mad-recall", {{"length", "127"}}), "mad-recall: expected an even length, got 127");
}

using Word = std::vector<std::int64_t>;

/// The keys and values of a fuzzy sequence, in turn.
std::vector<Word> words_of(const Word& tokens) {
  std::vector<Word> words;
  int kind = 2;
  for (std::int64_t token : tokens) {
    if (token == 15) continue;
    if (std::exchange(kind, token < 7 ? 0 : 1) != (token < 7 ? 0 : 1)) words.emplace_back();
    words.back().push_back(token);
  }
  return words;
}

TEST(MadFuzzy, KeepsKeysAndTheirValuesTogether) {
  const auto task = make_task("mad-fuzzy");
  for (Split split : {Split::train, Split::test}) {
    std::map<std::size_t, double> key_sizes, value_sizes;
    each_example(*task, split, 300, [&](const Batch& batch) {
      ASSERT_EQ(batch.T, 128);
      Word all = batch.tokens;
      all.push_back(batch.labels.back());
      const std::vector<Word> words = words_of(all);
      ASSERT_EQ(words.size() % 2, 0U);
      std::map<Word, Word> value_of;
      Word asked, labels;
      for (std::size_t i = 0; i < words.size(); i += 2) {
        const Word &key = words[i], &value = words[i + 1];
        EXPECT_EQ(std::set(key.begin(), key.end()).size(), key.size());
        EXPECT_EQ(std::set(value.begin(), value.end()).size(), value.size());
        const auto [known, first] = value_of.try_emplace(key, value);
        EXPECT_EQ(known->second, value);
        if (!first) asked.insert(asked.end(), value.begin(), value.end());
        EXPECT_TRUE(!first || i + 2 < words.size()) << "the last key is known";
        if (first) ++value_sizes[value.size()];
        ++key_sizes[key.size()];
      }
      for (std::int64_t label : batch.labels)
        if (label != kIgnored) labels.push_back(label);
      if (split == Split::test)
        EXPECT_EQ(labels, asked);
      else
        expect_next_tokens(batch);
    });
    EXPECT_EQ(key_sizes.size(), split == Split::train ? 3U : 1U);
    EXPECT_EQ(key_sizes.rbegin()->first, 3U);
    EXPECT_EQ(value_sizes.size(), 3U);
  }
  EXPECT_EQ(error_of("mad-fuzzy", {{"length", "17"}}), "mad-fuzzy: expected a length of at least 18, got 17");
  EXPECT_EQ(error_of("mad-fuzzy", {{"vocabulary", "6"}}), "mad-fuzzy: expected a vocabulary of at least 7, got 6");
}

TEST(MadCopy, AsksForTheTokensAmongBlanksInOrder) {
  const auto task = make_task("mad-copy");
  each_example(*task, Split::test, 200, [](const Batch& batch) {
    ASSERT_EQ(batch.T, 256);
    EXPECT_EQ(batch.tokens[239], 15);
    Word copied, labels(batch.labels.begin() + 240, batch.labels.end());
    for (std::size_t t = 0; t < 239; ++t)
      if (batch.tokens[t] != 14) copied.push_back(batch.tokens[t]);
    EXPECT_EQ(copied, labels);
    EXPECT_EQ(copied.size(), 16U);
    EXPECT_NE(batch.tokens[238], 14);  // blanks stand before tokens, never after the last
    EXPECT_EQ(std::count(batch.labels.begin(), batch.labels.end(), kIgnored), 240);
    EXPECT_EQ(std::count(batch.tokens.begin() + 240, batch.tokens.end(), 14), 16);
  });
  EXPECT_EQ(error_of("mad-copy", {{"tokens", "128"}}), "mad-copy: expected a length above 257, got 256");
}

TEST(MadMemorize, HasOneMappingForAllSequences) {
  const auto task = make_task("mad-memorize"), other = make_task("mad-memorize", {{"seed", "1"}});
  std::map<std::int64_t, std::int64_t> value_of;
  const auto look = [&](const Batch& batch) {
    for (std::size_t t = 0; t < 32; t += 2) {
      EXPECT_TRUE(batch.tokens[t] < 127 && batch.tokens[t + 1] == 255 && batch.labels[t] == kIgnored);
      EXPECT_TRUE(batch.labels[t + 1] >= 127 && batch.labels[t + 1] < 255);
      EXPECT_EQ(value_of.try_emplace(batch.tokens[t], batch.labels[t + 1]).first->second, batch.labels[t + 1]);
    }
  };
  each_example(*task, Split::train, 256, look);
  each_example(*task, Split::test, 200, look);
  EXPECT_EQ(value_of.size(), 127U);
  std::set<std::int64_t> values;
  for (const auto& [key, value] : value_of) values.insert(value);
  EXPECT_EQ(values.size(), 127U);
  Batch batch;
  other->fill(Split::train, 0, 1, batch);
  int same = 0;
  for (std::size_t t = 0; t < 32; t += 2) same += value_of[batch.tokens[t]] == batch.labels[t + 1] ? 1 : 0;
  EXPECT_LT(same, 8);
}

TEST(MadCompress, AsksForEveryTokenAtTheEnd) {
  const auto task = make_task("mad-compress");
  EXPECT_EQ(task->shape().kind, TaskKind::autoencoder);
  each_example(*task, Split::train, 50, [](const Batch& batch) {
    EXPECT_EQ(batch.labels, batch.tokens);
    EXPECT_EQ(batch.tokens.back(), 15);
    EXPECT_EQ(std::count(batch.tokens.begin(), batch.tokens.end(), 15), 1);
  });
}

}  // namespace
}  // namespace isomer

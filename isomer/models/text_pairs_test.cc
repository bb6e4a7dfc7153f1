// Pairs of texts: how files of them are read, and that scores are those of the model's own vectors.
#include "isomer/models/text_pairs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "isomer/io/text.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

using tests::error_of;

std::string golden(const char* name) {
  return (std::filesystem::path(ISOMER_SOURCE_DIR) / "tests/goldens/foreign" / name).string();
}

TEST(TextPairs, ColumnsAreWhereTheCallerSays) {
  const tests::TemporaryFolder folder;
  const std::string path = (folder.path / "pairs.tsv").string();
  write_text(path, "news\t2.5\ta \"b\"\tc\textra\nnews\t0\t\td\n");
  const std::vector<TextPair> pairs = read_pairs(path, {2, 3, 4});
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].score, 2.5);
  EXPECT_EQ(pairs[0].first, "a \"b\"");
  EXPECT_EQ(pairs[0].second, "c");
  EXPECT_EQ(pairs[1].first, "");
}

TEST(TextPairs, WhatIsNoPairIsNamedByItsLine) {
  const tests::TemporaryFolder folder;
  const std::string path = (folder.path / "pairs.tsv").string();
  const auto error = [&](const char* text) {
    write_text(path, text);
    return error_of([&] { (void)read_pairs(path, {1, 2, 3}); });
  };
  EXPECT_EQ(error("1\ta\tb\n2\ta\n"), path + ":2: expected 3 columns between tabs, got 2");
  EXPECT_EQ(error("score\ta\tb\n"), path + ":1: expected a number in column 1, got score");
  EXPECT_EQ(error("nan\ta\tb\n"), path + ":1: expected a number in column 1, got nan");
  EXPECT_EQ(error("1\ta\tb\n"), path + ": expected two pairs or more, got 1");
}

TEST(TextPairs, ScoresAreCorrelationsWithTheCosines) {
  const auto loaded = load_model(golden("bert-encoder"));
  Context context(1);
  std::vector<TextPair> pairs{{0, "3 4 5", "6 7"}, {0, "8 9", "10 11 12"}, {0, "3 3 3", "4 13 5 6"}, {0, "14", "15 16"}};
  for (TextPair& pair : pairs) {
    const std::vector<float> a = embedding_of(*loaded, pair.first, context), b = embedding_of(*loaded, pair.second, context);
    EXPECT_NEAR(cosine(a, a), 1, 1e-6);
    pair.score = std::exp(3 * cosine(a, b));  // the same order, another scale
  }
  const PairScores scores = score_pairs(*loaded, pairs, "", context);
  EXPECT_EQ(scores.pairs, 4);
  EXPECT_DOUBLE_EQ(scores.spearman, 1);
  EXPECT_GT(scores.pearson, 0.5);
  EXPECT_LT(scores.pearson, 1);
  const PairScores other = score_pairs(*loaded, pairs, "17 ", context);
  EXPECT_NE(other.pearson, scores.pearson) << "the prefix is part of every text";
}

TEST(TextPairs, TextsOfALengthRunTogetherAndChangeNothing) {
  const auto loaded = load_model(golden("bert-encoder"));
  Context context(1);
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) texts.push_back(std::to_string(3 + i % 15) + (i % 3 == 0 ? " 5 6" : " 7"));
  const std::vector<std::vector<float>> together = embeddings_of(loaded->model, *loaded->tokenizer, texts, context);
  ASSERT_EQ(together.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::vector<float> alone = embedding_of(*loaded, texts[i], context);
    ASSERT_EQ(together[i].size(), alone.size());
    for (std::size_t d = 0; d < alone.size(); ++d) EXPECT_NEAR(together[i][d], alone[d], 1e-6);
  }
}

TEST(TextPairs, OtherModelsHaveNoVectorOfAText) {
  const auto loaded = load_model(golden("llama"));
  Context context(1);
  EXPECT_EQ(error_of([&] { (void)embedding_of(*loaded, "3", context); }), "expected an encoder of texts, got a language");
}

}  // namespace
}  // namespace isomer

// Pairs of texts: how files of them are read, and that scores are those of the model's own vectors.
#include "isomer/models/text_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
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

/// As many tokens as there are words, between 17 and 18.
class Framed : public Tokenizer {
 public:
  [[nodiscard]] std::string_view name() const override { return "framed"; }
  [[nodiscard]] bool is_text() const override { return true; }
  [[nodiscard]] Index vocabulary() const override { return 19; }
  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text) const override {
    return std::vector<std::int64_t>(std::size_t(std::ranges::count(text, ' ') + 1), 3);
  }
  [[nodiscard]] TokenizerInput encode_input(std::string_view text) const override {
    TokenizerInput input{encode(text)};
    input.tokens.insert(input.tokens.begin(), 17);
    input.tokens.push_back(18);
    return input;
  }
  [[nodiscard]] std::string decode(std::span<const std::int64_t>) const override { return ""; }
  [[nodiscard]] std::string to_json() const override { return ""; }
};

TEST(TextPairs, OfLongTextsTheLastWordsAreLeftOutAndNotWhatStandsBehindThem) {
  const auto loaded = load_model(golden("bert-encoder"));
  const Framed tokenizer;
  Context context(1);
  const auto vector = [&](Index words, Index most) {
    std::string text = "a";
    for (Index i = 1; i < words; ++i) text += " a";
    return embeddings_of(loaded->model, tokenizer, {&text, 1}, context, most)[0];
  };
  const Index longest = loaded->model.config().length;
  EXPECT_EQ(vector(longest + 5, 0), vector(longest - 2, 0)) << "the frame stays";
  EXPECT_EQ(vector(20, 8), vector(6, 0));
  EXPECT_EQ(vector(6, 8), vector(6, 0));
  EXPECT_EQ(vector(longest + 5, 10 * longest), vector(longest - 2, 0));
  EXPECT_NE(vector(20, 8), vector(20, 0));
}

TEST(TextPairs, AFolderSaysHowManyTokensCountAndKeepsIt) {
  const tests::TemporaryFolder folder, saved;
  std::filesystem::copy(golden("bert-encoder"), folder.path, std::filesystem::copy_options::recursive);
  const std::string from = folder.path.string(), to = saved.path.string(), limit = from + "/sentence_bert_config.json";
  std::filesystem::create_directory(from + "/1_Pooling");
  write_text(from + "/1_Pooling/config.json", R"({"pooling_mode": "cls"})");
  write_text(limit, R"({"max_seq_length": 4, "do_lower_case": false})");
  Context context(1);
  const auto loaded = load_model(from);
  EXPECT_EQ(loaded->most_tokens, 4);
  EXPECT_EQ(embedding_of(*loaded, "3 4 5 6 7 8", context), embedding_of(*loaded, "3 4 5 6", context));
  // Who saves it saves how its vectors are made.
  save_model(to, *loaded);
  const auto again = load_model(to);
  EXPECT_EQ(again->most_tokens, 4);
  EXPECT_EQ(again->model.config().pool, Pool::first);
  EXPECT_EQ(embedding_of(*again, "3 4 5 6 7 8", context), embedding_of(*loaded, "3 4 5 6 7 8", context));
  write_text(limit, R"({"max_seq_length": null})");
  EXPECT_EQ(load_model(from)->most_tokens, 0);
  write_text(limit, R"({"max_seq_length": 0})");
  EXPECT_EQ(error_of([&] { (void)load_model(from); }), limit + ": max_seq_length: expected a whole number of at least 1");
}

TEST(TextPairs, OtherModelsHaveNoVectorOfAText) {
  const auto loaded = load_model(golden("llama"));
  Context context(1);
  EXPECT_EQ(error_of([&] { (void)embedding_of(*loaded, "3", context); }), "expected an encoder of texts, got a language");
}

}  // namespace
}  // namespace isomer

#include "isomer/models/tokenizers/given_parts.h"

#include <gtest/gtest.h>

#include <limits>

#include "isomer/models/tokenizers/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {
using tests::error_of;
using Tokens = std::vector<std::int64_t>;

Json golden_tokenizer(const std::string& name) { return tests::read_golden(name).at("tokenizer"); }
std::vector<std::string> pieces_of(const Json& tokenizer) {
  std::vector<std::string> pieces;
  const auto put = [&](const std::string& piece, std::int64_t number) {
    pieces.resize(std::max(pieces.size(), std::size_t(number) + 1));
    pieces[std::size_t(number)] = piece;
  };
  for (const auto& [piece, number] : tokenizer.at("model").at("vocab").members()) put(piece, number.integer());
  for (const Json& token : tokenizer.at("added_tokens").items()) put(token.at("content").text(), token.at("id").integer());
  return pieces;
}

const std::vector<std::string> kTexts{"The lowest roads follow the newest river",
                                      "  spaces\tand\n\nlines ",
                                      "It's 12345 or 1/2: 中文 🙂 é e\u0301 Быстрая река",
                                      "<s>a</s> b<|endoftext|>c<|im_start|>user\nhi<|im_end|>",
                                      "def f(x):\n    return x ** 2  # x",
                                      "x<0x0A>\xe2\x96\x81y",
                                      ""};

void expect_same(const Tokenizer& one, const Tokenizer& other) {
  for (const std::string& text : kTexts) {
    const Tokens tokens = one.encode(text);
    EXPECT_EQ(tokens, other.encode(text)) << text;
    EXPECT_EQ(one.encode_input(text).tokens, other.encode_input(text).tokens) << text;
    EXPECT_EQ(one.encode_pair("a", text).types, other.encode_pair("a", text).types) << text;
    EXPECT_EQ(one.decode(tokens), other.decode(tokens)) << text;
  }
}

// Their goldens are checked against the package `tokenizers`; what GGUF has of them must give the same.
TEST(GivenParts, OfMergesAreTheTokenizerJsonOfTheSameModel) {
  for (const auto& [name, words] : {std::pair("gpt2", "gpt-2"), std::pair("smollm2", "smollm"), std::pair("llama3", "llama-bpe"),
                                    std::pair("qwen2", "qwen2"), std::pair("qwen3_5", "qwen35")}) {
    const Json json = golden_tokenizer(name);
    MergedPieces parts{.pieces = pieces_of(json), .merges = {}, .words = words};
    for (const Json& merge : json.at("model").at("merges").items())
      parts.merges.push_back(merge.items()[0].text() + " " + merge.items()[1].text());
    parts.types.assign(parts.pieces.size(), std::int32_t(PieceType::normal));
    for (const Json& token : json.at("added_tokens").items())
      parts.types[std::size_t(token.at("id").integer())] = std::int32_t(PieceType::control);
    const auto whole = tokenizer_from(json.dump(), name, 4096);
    if (std::string_view(name) == "llama3") parts.begin = whole->token_of("<|begin_of_text|>");
    const auto made = tokenizer_of_merges(parts);
    SCOPED_TRACE(name);
    expect_same(*whole, *made);
    expect_same(*made, *tokenizer_from(made->to_json(), "t.json", 4096));
  }
}

ScoredPieces scored(const Json& json) {
  ScoredPieces parts{.pieces = pieces_of(json), .scores = {}, .begin = 1};
  for (std::size_t i = 0; i < parts.pieces.size(); ++i) {
    parts.scores.push_back(i < 259 ? 0.F : -float(i));
    parts.types.push_back(std::int32_t(i == 0    ? PieceType::unknown
                                       : i < 3   ? PieceType::control
                                       : i < 259 ? PieceType::byte
                                                 : PieceType::normal));
  }
  return parts;
}

TEST(GivenParts, OfScoresAreTheTokenizerJsonOfTheSameModel) {
  const Json json = golden_tokenizer("llama2");
  const auto whole = tokenizer_from(json.dump(), "llama2", 4096), made = tokenizer_of_scores(scored(json));
  for (const std::string& text : kTexts) {
    EXPECT_EQ(whole->encode(text), made->encode(text)) << text;
    EXPECT_EQ(whole->encode_input(text).tokens, made->encode_input(text).tokens) << text;
    EXPECT_EQ(whole->decode(whole->encode(text)), made->decode(made->encode(text))) << text;
  }
  ScoredPieces without = scored(json);
  without.space_in_front = false;
  EXPECT_EQ(tokenizer_of_scores(without)->decode(tokenizer_of_scores(without)->encode(" a b")), " a b");
}

/// As llama2.c writes it: the longest piece, then a score, a size and a text a piece.
std::string tokenizer_bin(const ScoredPieces& parts) {
  std::string file(4, '\0');
  for (std::size_t i = 0; i < parts.pieces.size(); ++i) {
    std::string piece = i == 1 ? "\n<s>\n" : i == 2 ? "\n</s>\n" : parts.pieces[i];
    for (std::size_t at = piece.find("▁"); at != std::string::npos; at = piece.find("▁")) piece.replace(at, 3, " ");
    const auto size = std::int32_t(piece.size());
    file.append(reinterpret_cast<const char*>(&parts.scores[i]), 4).append(reinterpret_cast<const char*>(&size), 4) += piece;
  }
  return file;
}

TEST(GivenParts, OfLlama2c) {
  const ScoredPieces parts = scored(golden_tokenizer("llama2"));
  const std::string file = tokenizer_bin(parts);
  const auto vocabulary = Index(parts.pieces.size());
  expect_same(*llama2c_tokenizer(file, "tokenizer.bin", vocabulary), *tokenizer_of_scores(parts));
  EXPECT_EQ(error_of([&] { (void)llama2c_tokenizer(file, "tokenizer.bin", vocabulary + 1); }),
            "tokenizer.bin: expected 561 pieces, got a file that ends before");
  EXPECT_EQ(error_of([] { (void)llama2c_tokenizer(std::string(17, '\xff'), "t", 2); }),
            "t: expected 2 pieces, got a file that ends before");
}

TEST(GivenParts, RefusesWhatDoesNotFit) {
  const MergedPieces good{.pieces = {"a", "b", "ab"}, .merges = {"a b"}};
  EXPECT_EQ(tokenizer_of_merges(good)->encode("ab"), (Tokens{2}));
  const auto problem = [&](auto&& change) {
    MergedPieces parts = good;
    change(parts);
    return error_of([&] { (void)tokenizer_of_merges(parts); });
  };
  EXPECT_EQ(
      problem([](MergedPieces& parts) { parts.words = "tekken"; }),
      "tokenizer.ggml.pre: expected a way to cut words that is known (default, gpt-2, smollm, llama-bpe, qwen2, …), got tekken");
  EXPECT_EQ(problem([](MergedPieces& parts) { parts.types = {1}; }), "tokenizer: expected 3 types, one a piece, got 1");
  EXPECT_EQ(problem([](MergedPieces& parts) { parts.begin = 3; }), "tokenizer: expected tokens below 3 around a text, got 3");
  EXPECT_EQ(problem([](MergedPieces& parts) { parts.merges = {"a c"}; }), "merges: expected tokens of the vocabulary, got c");
  EXPECT_EQ(error_of([] { (void)tokenizer_of_scores({.pieces = {"a"}, .scores = {}}); }),
            "tokenizer: expected 1 scores, one a piece, got 0");
  EXPECT_EQ(error_of([] { (void)tokenizer_of_scores({.pieces = {"a"}, .scores = {std::numeric_limits<float>::infinity()}}); }),
            "tokenizer: expected scores that are finite, got inf");
}

}  // namespace
}  // namespace isomer

#include "isomer/models/tokenizer.h"

#include <gtest/gtest.h>

#include "tests/error_of.h"

namespace isomer {
namespace {
using tests::error_of;
using Tokens = std::vector<std::int64_t>;

TEST(Tokenizer, OfBytesTakesAnyText) {
  const auto tokenizer = byte_tokenizer();
  const Tokens tokens = tokenizer->encode("a\xff\n");
  EXPECT_EQ(tokens, (Tokens{'a', 255, '\n'}));
  EXPECT_EQ(tokenizer->decode(tokens), "a\xff\n");
  EXPECT_EQ(tokenizer->vocabulary(), 256);
  EXPECT_TRUE(tokenizer->is_text());
}

TEST(Tokenizer, OfNumbersTakesThoseOfTheVocabulary) {
  const auto tokenizer = number_tokenizer(64);
  EXPECT_EQ(tokenizer->encode(" 1 0\n63 "), (Tokens{1, 0, 63}));
  EXPECT_EQ(tokenizer->encode(""), Tokens{});
  EXPECT_EQ(tokenizer->decode(Tokens{1, 63}), "1 63 ");
  EXPECT_FALSE(tokenizer->is_text());
  EXPECT_EQ(error_of([&] { (void)tokenizer->encode("1 a"); }), "expected token numbers separated by spaces, got 1 a");
  EXPECT_EQ(error_of([&] { (void)tokenizer->encode("1 64"); }), "expected tokens from 0 to 63, got 64");
  EXPECT_EQ(error_of([&] { (void)tokenizer->encode("-1"); }), "expected tokens from 0 to 63, got -1");
}

TEST(Tokenizer, OfWordsReadsWhatItWrites) {
  const auto tokenizer = word_tokenizer({"_", "0", "[MAX"});
  EXPECT_EQ(tokenizer->decode(Tokens{2, 1, 0}), "[MAX 0 _ ");
  EXPECT_EQ(tokenizer->encode("[MAX 0 _ "), (Tokens{2, 1, 0}));
  EXPECT_EQ(tokenizer->vocabulary(), 3);
  EXPECT_EQ(error_of([&] { (void)tokenizer->encode("[MAY"); }),
            "expected words of the model's vocabulary (_, 0, [MAX), got [MAY, did you mean [MAX?");
  EXPECT_EQ(error_of([] {
              (void)word_tokenizer({"a", "b", "c", "d", "e", "f", "g", "h", "i"})->encode("1");
            }),
            "expected words of the model's vocabulary (a, b, c, d, e, f, g, h, …), got 1");
  EXPECT_EQ(error_of([] { (void)word_tokenizer({"a", "b c"}); }), "words: expected words without spaces, got \"b c\"");
  EXPECT_EQ(error_of([] { (void)word_tokenizer({"a", ""}); }), "words: expected words without spaces, got \"\"");
  EXPECT_EQ(error_of([] { (void)word_tokenizer({"a", "a"}); }), "words: expected different words, got a twice");
}

TEST(Tokenizer, ComesBackFromItsFile) {
  const auto again = [](const Tokenizer& tokenizer) { return tokenizer_from(tokenizer.to_json(), "t.json", 256); };
  EXPECT_EQ(again(*byte_tokenizer())->name(), "bytes");
  const auto words = again(*word_tokenizer({"x", "y"}));
  EXPECT_EQ(words->name(), "words");
  EXPECT_EQ(words->encode("y x"), (Tokens{1, 0}));
  const auto numbers = again(*number_tokenizer(256));
  EXPECT_EQ(numbers->name(), "numbers");
  EXPECT_EQ(numbers->vocabulary(), 256);
  EXPECT_EQ(tokenizer_from(R"({"version": 1, "name": "numbers"})", "t.json", 5)->vocabulary(), 5);
}

TEST(Tokenizer, RefusesFilesThatAreNone) {
  const auto problem = [](const char* json) { return error_of([&] { (void)tokenizer_from(json, "t.json", 2); }); };
  EXPECT_TRUE(problem("{").starts_with("t.json: expected JSON, got ")) << problem("{");
  EXPECT_EQ(problem("[]"), "t.json: expected an object, got an array");
  EXPECT_EQ(problem(R"({"version": 1})"), "t.json: expected a member name, got none");
  EXPECT_EQ(problem(R"({"version": "1", "name": "bytes"})"), "t.json: expected a whole number, got a string");
  EXPECT_EQ(problem(R"({"version": 2, "name": "bytes"})"), "t.json: version: expected at most 1, got 2: a newer isomer wrote it");
  EXPECT_EQ(problem(R"({"version": 1, "name": "bites"})"),
            "t.json: name: expected bytes, numbers or words, got bites, did you mean bytes?");
  EXPECT_EQ(problem(R"({"version": 1, "name": "words"})"), "t.json: expected a member words, got none");
  EXPECT_EQ(problem(R"({"version": 1, "name": "words", "words": [1]})"), "t.json: expected a string, got a number");
  EXPECT_EQ(problem(R"({"version": 1, "name": "bytes"})"),
            "t.json: vocabulary: expected at most 2 tokens, which is what the model has, got 256");
}

}  // namespace
}  // namespace isomer

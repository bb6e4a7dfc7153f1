#include "isomer/models/byte_pairs.h"

#include <gtest/gtest.h>

#include "isomer/base/rng.h"
#include "isomer/io/json.h"
#include "tests/error_of.h"

namespace isomer {
namespace {
using Tokens = std::vector<std::int64_t>;
using tests::error_of;

const std::string kText =
    "low lower lowest newest widest wider, slow slower slowest; the newest and the widest low road\n"
    "low lower lowest newest widest wider, slow slower slowest; the newest and the widest low road\n"
    "low lower lowest newest widest wider, slow slower slowest; the newest and the widest low road\n";

std::unique_ptr<Tokenizer> trained() {
  return train_byte_pairs(std::span(&kText, 1), {.vocabulary = 280, .special = {"<|end|>"}});
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all;
  WordCutter cutter(text);
  for (std::string_view word = cutter.next(); !word.empty(); word = cutter.next()) all.emplace_back(word);
  return all;
}

TEST(WordCutter, CutsLikeGpt2) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("Hello world"), (Words{"Hello", " world"}));
  EXPECT_EQ(words("we'll don't it's 'S"), (Words{"we", "'ll", " don", "'t", " it", "'s", " '", "S"}));
  EXPECT_EQ(words("a  b   "), (Words{"a", " ", " b", "   "}));
  EXPECT_EQ(words("x\n\n y\t"), (Words{"x", "\n\n", " y", "\t"}));
  EXPECT_EQ(words("\n\tx"), (Words{"\n", "\t", "x"}));
  EXPECT_EQ(words("ab12½ ³!? é_"), (Words{"ab", "12½", " ³", "!?", " é", "_"}));
  EXPECT_EQ(words("!'s"), (Words{"!'", "s"}));
  EXPECT_EQ(words("\xff\xfe a"), (Words{"\xff\xfe", " a"}));
  EXPECT_EQ(words(""), Words{});
  EXPECT_EQ(words(" "), (Words{" "}));
}

// Merges and tokens of the package tokenizers 0.23 (PyPI), trained on the same text with the same special token.
TEST(BytePairs, LearnsTheMergesOfTokenizers) {
  const Json json = Json::parse(trained()->to_json(), "tokenizer");
  EXPECT_EQ(json.at("model").at("merges").dump(),
            R"([["l","o"],["lo","w"],["e","s"],["es","t"],["e","r"],["i","d"],["s","low"],["w","id"],["Ġ","low"],["Ġ","slow"],)"
            R"(["Ġ","wid"],["e","w"],["h","e"],["n","ew"],["t","he"],["Ġ","new"],["Ġ","the"],["Ġwid","est"],["Ġnew","est"],)"
            R"(["a","d"],["a","n"],["o","ad"],["r","oad"]])");
  EXPECT_EQ(json.at("model").at("vocab").members().size(), 280U);
  EXPECT_EQ(json.at("model").at("vocab").at("<|end|>").integer(), 0);
  EXPECT_EQ(json.at("model").at("vocab").at("!").integer(), 1);
}

TEST(BytePairs, GivesTheTokensOfTokenizers) {
  const auto first = trained(), read = tokenizer_from(first->to_json(), "t.json", 280);
  for (const Tokenizer* tokenizer : {first.get(), read.get()}) {
    for (const auto& [text, tokens] : std::vector<std::pair<std::string, Tokens>>{
             {"low", {258}},
             {"slowest  road\n", {263, 260, 221, 221, 279, 199}},
             {"We'll've 's don't'", {55, 69, 7, 76, 76, 7, 86, 69, 221, 7, 83, 221, 68, 79, 78, 7, 84, 7}},
             {"é中 😀!", {128, 103, 161, 117, 256, 221, 173, 254, 247, 223, 1}},
             {"  \t\nx", {221, 221, 198, 199, 88}},
             {"a\xc2\xa0\xe3\x80\x80"
              "b  ",
              {65, 127, 255, 160, 223, 223, 66, 221, 221}},
             {"12½ ٣<|end|>wider<|end|", {17, 18, 127, 122, 221, 150, 97, 0, 264, 261, 28, 92, 69, 78, 68, 92}},
             {"aaaa", {65, 65, 65, 65}},
             {std::string("\0\x7f", 2), {189, 222}},
             {"   ", {221, 221, 221}},
             {"", {}}}) {
      EXPECT_EQ(tokenizer->encode(text), tokens) << text;
      EXPECT_EQ(tokenizer->decode(tokens), text);
    }
    EXPECT_EQ(tokenizer->vocabulary(), 280);
    EXPECT_EQ(tokenizer->name(), "byte-pairs");
    EXPECT_TRUE(tokenizer->is_text());
  }
}

TEST(BytePairs, DecodesToTheBytesOfAnyText) {
  const auto tokenizer = trained();
  Rng rng(5);
  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (std::uint64_t n = rng.below(60); n > 0; --n)
      text += rng.below(3) == 0 ? std::string(1, char(rng.below(256))) : " slowest";
    std::string piece_by_piece;
    for (const std::int64_t token : tokenizer->encode(text)) piece_by_piece += tokenizer->decode({&token, 1});
    EXPECT_EQ(piece_by_piece, text);
  }
  EXPECT_EQ(tokenizer->decode(Tokens{-1, 280, 258}), "low") << "others than its own are nothing";
}

TEST(BytePairs, TakesLongWordsInOneGo) {
  // Quadratic work on so long a word would take minutes.
  const std::string text(400000, 'a');
  const auto tokenizer = train_byte_pairs(std::span(&text, 1), {.vocabulary = 262});
  const Tokens tokens = tokenizer->encode(text);
  EXPECT_EQ(tokens.size(), 400000U / 64);
  EXPECT_EQ(tokenizer->decode(tokens), text);
}

TEST(BytePairs, StopsWhereNoPairIsThereTwice) {
  const std::string text = "ab ab cd";
  EXPECT_EQ(train_byte_pairs(std::span(&text, 1), {.vocabulary = 8000})->vocabulary(), 257);
  EXPECT_EQ(train_byte_pairs({}, {.vocabulary = 300})->vocabulary(), 256);
}

TEST(BytePairs, RefusesWhatItCannotLearn) {
  EXPECT_EQ(error_of([] { (void)train_byte_pairs({}, {.vocabulary = 256, .special = {"x"}}); }),
            "tokenizer: expected a vocabulary of at least 257, the bytes and the special tokens, got 256");
  EXPECT_EQ(error_of([] {
              (void)train_byte_pairs({}, {.special = {"x", "x"}});
            }),
            "tokenizer: expected different special tokens, got x twice");
  EXPECT_EQ(error_of([] { (void)train_byte_pairs({}, {.special = {""}}); }),
            "tokenizer: expected special tokens with a text, got an empty one");
}

/// A tokenizer.json of "a", "b" and "ab", as older files write merges, with something in place of something else.
std::string file(const std::string& from = "", const std::string& to = "") {
  std::string text = R"({"version": "1.0", "added_tokens": [{"id": 3, "content": "<s>", "special": true}], "normalizer": null,
"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true}, "decoder": {"type": "ByteLevel"}, "post_processor": null,
"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 4}, "merges": ["a b"]}})";
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(BytePairs, ReadsOlderFiles) {
  const auto tokenizer = tokenizer_from(file(), "t.json", 5);
  EXPECT_EQ(tokenizer->encode("ab<s>b"), (Tokens{4, 2, 3, 4, 1})) << "a space goes in front of each text";
  EXPECT_EQ(tokenizer->encode(" a"), (Tokens{4, 0}));
  EXPECT_EQ(tokenizer->to_json(), file()) << "nothing that the file says is lost";
  EXPECT_EQ(tokenizer->encode("acb"), (Tokens{4, 2})) << "a byte that has no token is left out";
  const auto whole =
      tokenizer_from(file(R"("add_prefix_space": true)", R"("add_prefix_space": false, "use_regex": false)"), "t", 5);
  EXPECT_EQ(whole->encode("b ab"), (Tokens{1, 4, 2}));
}

TEST(BytePairs, RefusesFilesOfOtherKinds) {
  const auto problem = [](const std::string& from, const std::string& to) {
    return error_of([&] { (void)tokenizer_from(file(from, to), "t.json", 5); });
  };
  EXPECT_EQ(problem("\"BPE\"", "\"WordLevel\""), "t.json: model: expected BPE, WordPiece or Unigram, got WordLevel");
  EXPECT_EQ(problem("\"BPE\"", "\"WordPiece\""),
            "t.json: pre_tokenizer: expected ByteLevel only with BPE, got it with WordPiece");
  EXPECT_EQ(problem("\"normalizer\": null", R"("normalizer": {"type": "Nmt"})"),
            "t.json: normalizer: expected NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, Precompiled or "
            "BertNormalizer, got Nmt");
  EXPECT_EQ(problem(R"("pre_tokenizer": {"type": "ByteLevel")", R"("pre_tokenizer": {"type": "Sequence")"),
            "t.json: expected a member pretokenizers, got none");
  EXPECT_EQ(
      problem(R"("pre_tokenizer": {"type": "ByteLevel")", R"("pre_tokenizer": {"type": "CharDelimiterSplit")"),
      "t.json: pre_tokenizer: expected ByteLevel, Split, Digits, BertPreTokenizer, Punctuation, Whitespace, WhitespaceSplit or "
      "Metaspace, got CharDelimiterSplit");
  EXPECT_EQ(problem(R"("decoder": {"type": "ByteLevel"})", R"("decoder": {"type": "CTC"})"),
            "t.json: decoder: expected ByteLevel, ByteFallback, WordPiece, Metaspace, Replace, Strip or Fuse, got CTC");
  EXPECT_EQ(problem("\"post_processor\": null", R"("post_processor": {"type": "Other"})"),
            "t.json: post_processor: expected ByteLevel, TemplateProcessing, BertProcessing or RobertaProcessing, got Other");
  EXPECT_EQ(problem(R"("type": "BPE")", R"("type": "BPE", "unk_token": "<unk>")"),
            "t.json: unk_token: expected a token of the vocabulary, got <unk>");
  EXPECT_EQ(problem(R"("type": "BPE")", R"("type": "BPE", "end_of_word_suffix": "</w>")"),
            "t.json: end_of_word_suffix: expected none, got \"</w>\"");
  EXPECT_EQ(problem("\"<s>\"", "\"\""), "t.json: added_tokens: expected texts, got an empty one");
  EXPECT_EQ(problem("\"ab\": 2", "\"ab\": -2"), "t.json: vocab: expected numbers from 0 to 16777215, got -2");
  EXPECT_EQ(problem("\"ab\": 2", "\"ab\": 4000000000"), "t.json: vocab: expected numbers from 0 to 16777215, got 4000000000");
  EXPECT_EQ(problem("\"a b\"", "\"a c\""), "t.json: merges: expected tokens of the vocabulary, got c");
  EXPECT_EQ(problem("\"a b\"", "\"ab\""), "t.json: merges: expected two tokens, got ab");
  EXPECT_EQ(problem("\"a b\"", "[\"a\"]"), "t.json: merges: expected two tokens, got 1");
  EXPECT_EQ(problem("\"Ġ\": 4", "\"Ġ\": 9"),
            "t.json: vocabulary: expected at most 5 tokens, which is what the model has, got 10");
}

}  // namespace
}  // namespace isomer

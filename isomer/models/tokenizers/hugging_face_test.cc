#include "isomer/models/tokenizers/hugging_face.h"

#include <gtest/gtest.h>

#include "isomer/models/tokenizers/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {
using tests::error_of;
using Tokens = std::vector<std::int64_t>;

Json golden(const std::string& name) { return tests::read_golden(name).at("tokenizer"); }
std::unique_ptr<Tokenizer> read(const Json& json) { return tokenizer_from(json.dump(), "t.json", 4096); }

TEST(HuggingFace, PutsSpecialTokensAroundTexts) {
  const auto bert = read(golden("bert-uncased"));
  const std::int64_t begin = bert->token_of("[CLS]").value(), end = bert->token_of("[SEP]").value();
  const Tokens road = bert->encode("road"), river = bert->encode("river");
  Tokens both{begin};
  both.insert(both.end(), road.begin(), road.end());
  both.push_back(end);
  EXPECT_EQ(bert->encode_input("road").tokens, both);
  EXPECT_EQ(bert->encode_input("road").types, Tokens(both.size(), 0));
  Tokens types(both.size(), 0);
  both.insert(both.end(), river.begin(), river.end());
  both.push_back(end);
  types.resize(both.size(), 1);
  EXPECT_EQ(bert->encode_pair("road", "river").tokens, both);
  EXPECT_EQ(bert->encode_pair("road", "river").types, types);
  EXPECT_EQ(byte_tokenizer()->encode_input("ab").types, (Tokens{0, 0}));
  EXPECT_EQ(byte_tokenizer()->encode_pair("a", "b").tokens, (Tokens{'a', 'b'}));
  EXPECT_EQ(byte_tokenizer()->encode_pair("a", "b").types, (Tokens{0, 1}));
}

TEST(HuggingFace, FindsTokensByTheirTexts) {
  const auto bert = read(golden("bert-uncased"));
  EXPECT_EQ(bert->encode("[MASK]"), Tokens{bert->token_of("[MASK]").value()});
  EXPECT_EQ(find_special(*bert, SpecialToken::mask), bert->token_of("[MASK]"));
  EXPECT_EQ(find_special(*bert, SpecialToken::pad), bert->token_of("[PAD]"));
  EXPECT_EQ(find_special(*bert, SpecialToken::unknown), bert->token_of("[UNK]"));
  EXPECT_EQ(find_special(*read(golden("llama3")), SpecialToken::mask), std::nullopt);
  EXPECT_EQ(find_special(*read(golden("llama2")), SpecialToken::begin), 1);
  EXPECT_EQ(find_special(*read(golden("llama2")), SpecialToken::end), 2);
  EXPECT_FALSE(bert->token_of("no such piece"));
  EXPECT_FALSE(byte_tokenizer()->token_of("a"));
  EXPECT_EQ(word_tokenizer({"x", "y"})->token_of("y"), 1);
}

TEST(HuggingFace, DecodesPieceByPiece) {
  const auto llama = read(golden("llama2"));
  const Tokens tokens = llama->encode("the road");
  EXPECT_EQ(llama->decode(tokens), "the road");
  EXPECT_EQ(llama->decode_next(tokens), " the road") << "behind other tokens the space counts";
  EXPECT_EQ(llama->decode(Tokens{-1, 1 << 20}), "") << "others than its own are nothing";
}

TEST(HuggingFace, TakesBytesThatAreNotUtf8) {
  const auto gpt2 = read(golden("gpt2"));
  EXPECT_EQ(gpt2->decode(gpt2->encode("a\xff\xc3 b")), "a\xff\xc3 b") << "byte-level ones keep them";
  const auto llama = read(golden("llama2"));
  EXPECT_EQ(llama->encode("a\xff"), llama->encode("a\ufffd"));
  const auto bert = read(golden("bert-uncased"));
  EXPECT_EQ(bert->encode("ro\xff\xe2\x82\x61 d"), bert->encode("roa d")) << "the clean text of BERT has no U+FFFD";
}

TEST(HuggingFace, TakesLongTextsInOneGo) {
  // Quadratic work on so long a text would take minutes.
  for (const char* name : {"gpt2", "llama2", "mistral", "gemma", "bert-uncased", "added", "t5", "albert"}) {
    const auto tokenizer = read(golden(name));
    for (const std::string& part :
         {std::string("a"), std::string("the road "), std::string(" "), std::string("<s>"), std::string("é")}) {
      std::string text;
      while (text.size() < 200000) text += part;
      EXPECT_FALSE(tokenizer->encode("x" + text).empty()) << name << " of " << part;
    }
  }
}

/// A tokenizer.json of Unigram with something in place of something else.
std::string problem(const std::string& from, const std::string& to) {
  std::string text = R"({"added_tokens": [{"id": 0, "content": "<unk>", "special": true}], "normalizer": {"type": "NFC"},
"pre_tokenizer": {"type": "Metaspace"}, "decoder": {"type": "Metaspace"}, "post_processor": null,
"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1], ["b", -2.5]]}})";
  text.replace(text.find(from), from.size(), to);
  return error_of([&] { (void)tokenizer_from(text, "t.json", 5)->encode("ab c"); });
}

TEST(HuggingFace, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(problem("\"unk_id\": 0", "\"unk_id\": 3"), "t.json: unk_id: expected a token of the vocabulary, got 3");
  EXPECT_EQ(problem("\"unk_id\": 0", "\"unk_id\": null"), "unk_id: expected a token for characters that have none, got none");
  EXPECT_EQ(problem("[\"a\", -1]", "[\"a\"]"), "t.json: vocab: expected a piece and its score, got 1 values");
  EXPECT_EQ(problem("[\"a\", -1]", "[\"a\", null]"), "t.json: vocab: expected scores that are numbers, got none for a");
  EXPECT_EQ(problem("[\"a\", -1]", "7"), "t.json: expected an array, got a number");
  EXPECT_EQ(problem("{\"type\": \"NFC\"}", R"({"type": "Replace", "pattern": {"Regex": "a|b"}, "content": ""})"),
            "t.json: pattern: expected one of the expressions that are known (those of GPT-2, Llama 3 and Qwen), got a|b");
  EXPECT_EQ(problem("{\"type\": \"NFC\"}", R"({"type": "Replace", "pattern": {"String": ""}, "content": ""})"),
            "t.json: pattern: expected a text, got an empty one");
  EXPECT_EQ(problem("{\"type\": \"NFC\"}", R"({"type": "Precompiled", "precompiled_charsmap": "!"})"),
            "t.json: precompiled_charsmap: expected base64, got !");
  EXPECT_EQ(problem("{\"type\": \"NFC\"}", R"({"type": "Precompiled", "precompiled_charsmap": "AAA="})"),
            "t.json: precompiled_charsmap: expected at least 4 bytes, got 2");
  EXPECT_EQ(problem("{\"type\": \"NFC\"}", R"({"type": "Precompiled", "precompiled_charsmap": "/////w=="})"),
            "t.json: precompiled_charsmap: expected a trie of at most 0 bytes, got 4294967295");
  EXPECT_EQ(problem("{\"type\": \"Metaspace\"}", R"({"type": "Metaspace", "replacement": "ab"})"),
            "t.json: replacement: expected one character, got ab");
  EXPECT_EQ(problem("{\"type\": \"Metaspace\"}", R"({"type": "Metaspace", "prepend_scheme": "last"})"),
            "t.json: prepend_scheme: expected always, first or never, got last");
  EXPECT_EQ(problem("{\"type\": \"Metaspace\"}", R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "Kept"})"),
            "t.json: behavior: expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous, got Kept");
  EXPECT_EQ(problem("{\"type\": \"Metaspace\"}",
                    R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]})"),
            "t.json: pre_tokenizer: expected ByteLevel as the last step, got Digits behind it");
  EXPECT_EQ(problem("null", R"({"type": "BertProcessing", "cls": ["a", 9], "sep": ["b", 1]})"),
            "t.json: post_processor: expected tokens below 3, got 9");
  EXPECT_EQ(problem("null",
                    R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "C"}}], "pair": [], "special_tokens": {}})"),
            "t.json: post_processor: expected the sequence A or B, got C");
  std::string longest(5000, 'x');
  EXPECT_EQ(problem("<unk>\", \"special", longest.append("\", \"special")),
            "t.json: added_tokens: expected texts of at most 4096 bytes, got one of 5000");
}

TEST(HuggingFace, RefusesStepsThatGrowWithoutEnd) {
  std::string steps = R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaa"})";
  for (int i = 0; i < 5; ++i) steps += ", " + steps;
  EXPECT_TRUE(problem("{\"type\": \"NFC\"}", R"({"type": "Sequence", "normalizers": [)" + steps + "]}")
                  .starts_with("normalizer: expected steps that make a text at most 64 times as long, got "));
}

}  // namespace
}  // namespace isomer

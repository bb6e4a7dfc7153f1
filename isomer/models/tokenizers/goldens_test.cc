// Every kind of tokenizer against the package `tokenizers`: what tools/tokenizer-goldens wrote about 10,000 awkward texts.
#include <gtest/gtest.h>

#include "isomer/io/unicode.h"
#include "isomer/models/tokenizer.h"
#include "isomer/models/tokenizers/testing.h"
#include "tests/quick.h"

namespace isomer {
namespace {
using tests::read_golden;
using Tokens = std::vector<std::int64_t>;

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) bytes += char(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

/// As Texts of the tool makes them, one after the other.
class Texts {
 public:
  explicit Texts(const Json& json) {
    for (const Json& part : json.at("fragments").items()) parts_.push_back(from_hex(part.text()));
  }
  std::string next() {
    std::string text;
    for (std::uint64_t n = 1 + below(12); n > 0; --n) {
      text += parts_[below(parts_.size())];
      if (below(3) == 0) text += " ";
    }
    return text;
  }

 private:
  std::uint64_t below(std::uint64_t n) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return (state_ >> 33) % n;
  }
  std::vector<std::string> parts_;
  std::uint64_t state_ = 1;
};

class Hash {
 public:
  void add(const Tokens& numbers) {
    for (const std::int64_t number : numbers) add(std::uint64_t(number));
    add(0xffffffff);
  }
  void add(const std::string& text) {
    for (const char byte : text) add(static_cast<unsigned char>(byte));
    add(0xffffffff);
  }
  [[nodiscard]] std::string text() const {
    constexpr std::string_view kHex = "0123456789abcdef";
    std::string digits;
    for (int shift = 60; shift >= 32; shift -= 4) digits += kHex[(value_ >> shift) & 15];
    return digits;
  }

 private:
  void add(std::uint64_t number) { value_ = (value_ ^ number) * 0x100000001b3U; }
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

struct Kind {
  const char* file;
  const char* name;
  bool keeps_bytes = false;  // those that are not UTF-8, for which the package is given U+FFFD
};

class Goldens : public testing::TestWithParam<Kind> {};

TEST_P(Goldens, GivesWhatTokenizersGives) {
  const Json golden = read_golden(GetParam().file), made = read_golden("texts");
  const auto tokenizer = tokenizer_from(golden.at("tokenizer").dump(), GetParam().file, 4096);
  EXPECT_EQ(tokenizer->name(), GetParam().name);
  for (const Json& row : golden.at("shown").items()) {
    Tokens tokens;
    for (const Json& token : row.items()[1].items()) tokens.push_back(token.integer());
    EXPECT_EQ(tokenizer->encode(row.items()[0].text()), tokens) << row.items()[0].text();
    EXPECT_EQ(tokenizer->decode(tokens), row.items()[2].text());
  }
  Texts texts(made);
  const std::string& hashes = golden.at("hashes").text();
  const std::int64_t count = tests::quick() ? 500 : made.at("count").integer(), block = made.at("block").integer();
  Hash hash;
  std::string before;
  for (std::int64_t i = 0; i < count; ++i) {
    std::string text = texts.next();
    if (GetParam().keeps_bytes) text = valid_utf8(text);
    const Tokens tokens = tokenizer->encode(text);
    const TokenizerInput whole = tokenizer->encode_input(text), pair = tokenizer->encode_pair(before, text);
    const std::string decoded = tokenizer->decode(tokens);
    for (const Tokens* numbers : {&tokens, &whole.tokens, &whole.types, &pair.tokens, &pair.types}) hash.add(*numbers);
    hash.add(decoded);
    std::string pieces;
    for (std::size_t k = 0; k < tokens.size(); ++k)
      pieces += k == 0 ? tokenizer->decode({&tokens[k], 1}) : tokenizer->decode_next({&tokens[k], 1});
    EXPECT_EQ(pieces, decoded) << "piece by piece";
    if ((i + 1) % block == 0) {
      EXPECT_EQ(hash.text(), hashes.substr(std::size_t(i / block) * 9, 8)) << "texts " << i + 1 - block << " to " << i;
      hash = {};
    }
    before = text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Goldens,
    testing::Values(Kind{"gpt2", "byte-pairs", true}, Kind{"roberta", "byte-pairs", true}, Kind{"smollm2", "byte-pairs", true},
                    Kind{"llama3", "byte-pairs", true}, Kind{"deepseek", "byte-pairs", true}, Kind{"qwen2", "byte-pairs"},
                    Kind{"qwen3_5", "byte-pairs"}, Kind{"llama2", "byte-pairs"}, Kind{"mistral", "byte-pairs"},
                    Kind{"gemma", "byte-pairs"}, Kind{"bert-uncased", "word-pieces"}, Kind{"bert-cased", "word-pieces"},
                    Kind{"mpnet", "word-pieces"}, Kind{"added", "word-pieces"}, Kind{"t5", "unigrams"},
                    Kind{"xlm-roberta", "unigrams"}, Kind{"albert", "unigrams"}, Kind{"unigram-bytes", "unigrams"}),
    [](const auto& kind) {
      std::string name = kind.param.file;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == '-' || c == '_'; }, 'X');
      return name;
    });

}  // namespace
}  // namespace isomer

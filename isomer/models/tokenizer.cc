#include "isomer/models/tokenizer.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "isomer/base/error.h"
#include "isomer/base/settings.h"
#include "isomer/base/suggest.h"
#include "isomer/io/json.h"
#include "isomer/models/tokenizers/hugging_face.h"

namespace isomer {

namespace {
// Of tokenizer.json.
constexpr int kTokenizerVersion = 1;
constexpr std::array<std::string_view, 3> kNames{"bytes", "numbers", "words"};

Json head_of(std::string_view name) { return Json::object({{"version", kTokenizerVersion}, {"name", name}}); }

/// What stands between spaces and ends of lines.
std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  std::vector<std::string_view> words;
  for (std::size_t end = 0;;) {
    const std::size_t begin = text.find_first_not_of(kSpaces, end);
    if (begin == std::string_view::npos) return words;
    end = std::min(text.find_first_of(kSpaces, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
  }
}

class Bytes final : public Tokenizer {
 public:
  [[nodiscard]] std::string_view name() const override { return "bytes"; }
  [[nodiscard]] Index vocabulary() const override { return 256; }
  [[nodiscard]] bool is_text() const override { return true; }
  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text) const override {
    std::vector<std::int64_t> tokens;
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  [[nodiscard]] std::string decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    for (const std::int64_t token : tokens) text += char(token);
    return text;
  }
  [[nodiscard]] std::string to_json() const override { return head_of(name()).dump(1) + "\n"; }
};

class Numbers final : public Tokenizer {
 public:
  explicit Numbers(Index vocabulary) : vocabulary_(vocabulary) {}
  [[nodiscard]] std::string_view name() const override { return "numbers"; }
  [[nodiscard]] Index vocabulary() const override { return vocabulary_; }
  [[nodiscard]] bool is_text() const override { return false; }
  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text) const override {
    std::vector<std::int64_t> tokens;
    for (const std::string_view word : words_of(text)) {
      Index token = 0;
      if (!parse_number(word, token)) throw Error("expected token numbers separated by spaces, got " + std::string(text));
      if (token < 0 || token >= vocabulary_)
        throw Error("expected tokens from 0 to " + std::to_string(vocabulary_ - 1) + ", got " + std::to_string(token));
      tokens.push_back(token);
    }
    return tokens;
  }
  [[nodiscard]] std::string decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    for (const std::int64_t token : tokens) text += std::to_string(token) + " ";
    return text;
  }
  [[nodiscard]] std::string to_json() const override { return ""; }

 private:
  Index vocabulary_;
};

class Words final : public Tokenizer {
 public:
  explicit Words(std::vector<std::string> words) : words_(std::move(words)) {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::string& word = words_[i];
      require(words_of(word).size() == 1 && words_of(word)[0] == word, "words", "expected words without spaces, got \"", word,
              "\"");
      require(tokens_.emplace(word, std::int64_t(i)).second, "words", "expected different words, got ", word, " twice");
    }
  }
  [[nodiscard]] std::string_view name() const override { return "words"; }
  [[nodiscard]] Index vocabulary() const override { return Index(words_.size()); }
  [[nodiscard]] bool is_text() const override { return false; }
  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text) const override {
    std::vector<std::int64_t> tokens;
    for (const std::string_view word : words_of(text)) {
      const auto found = tokens_.find(std::string(word));
      if (found == tokens_.end())
        throw Error("expected words of the model's vocabulary (" + some_words() + "), got " + std::string(word) +
                    did_you_mean(word, words_));
      tokens.push_back(found->second);
    }
    return tokens;
  }
  [[nodiscard]] std::optional<std::int64_t> token_of(std::string_view piece) const override {
    const auto found = tokens_.find(std::string(piece));
    return found == tokens_.end() ? std::optional<std::int64_t>() : found->second;
  }
  [[nodiscard]] std::string decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    for (const std::int64_t token : tokens) text += words_[std::size_t(token)] + " ";
    return text;
  }
  [[nodiscard]] std::string to_json() const override {
    Json json = head_of(name());
    json.set("words", words_);
    return json.dump(1) + "\n";
  }

 private:
  /// All, or the first of many.
  [[nodiscard]] std::string some_words() const {
    constexpr std::size_t kMostShown = 8;
    std::string some;
    for (std::size_t i = 0; i < std::min(words_.size(), kMostShown); ++i) some += (i == 0 ? "" : ", ") + words_[i];
    return words_.size() > kMostShown ? some + ", …" : some;
  }

  std::vector<std::string> words_;
  std::unordered_map<std::string, std::int64_t> tokens_;
};

/// Null: numbers.
std::unique_ptr<Tokenizer> parsed(const Json& json, std::string_view text, Index vocabulary) {
  // Hugging Face's has what we call a name in its model.
  if (json.find("model") != nullptr) return hugging_face_tokenizer(json, text, vocabulary);
  const std::int64_t version = json.at("version").integer();
  require(version <= kTokenizerVersion, "version", "expected at most ", kTokenizerVersion, ", got ", version,
          ": a newer isomer wrote it");
  switch (position_of("name", json.at("name").text(), kNames)) {
    case 0: return byte_tokenizer();
    case 1: return nullptr;
    default: break;
  }
  std::vector<std::string> words;
  for (const Json& word : json.at("words").items()) words.push_back(word.text());
  return word_tokenizer(std::move(words));
}
}  // namespace

TokenizerInput Tokenizer::encode_input(std::string_view text) const {
  TokenizerInput input{encode(text)};
  input.types.resize(input.tokens.size());
  return input;
}

TokenizerInput Tokenizer::encode_pair(std::string_view first, std::string_view second) const {
  TokenizerInput input = encode_input(first);
  const std::vector<std::int64_t> others = encode(second);
  input.tokens.insert(input.tokens.end(), others.begin(), others.end());
  input.types.resize(input.tokens.size(), 1);
  return input;
}

std::vector<std::int64_t> input_of(const Tokenizer& tokenizer, std::string_view text, std::size_t most) {
  std::vector<std::int64_t> tokens = tokenizer.encode_input(text).tokens;
  if (tokens.size() <= most) return tokens;
  // What stands behind the text stays.
  const std::vector<std::int64_t> bare = tokenizer.encode(text);
  // Clang 14 cannot compile std::ranges::search of GCC's library.
  const auto own = std::search(tokens.begin(), tokens.end(), bare.begin(), bare.end());
  const bool found = !bare.empty() && own != tokens.end();
  const auto behind = std::min(std::ptrdiff_t(most), found ? tokens.end() - own - std::ssize(bare) : 0);
  tokens.erase(tokens.begin() + std::ptrdiff_t(most) - behind, tokens.end() - behind);
  return tokens;
}

std::optional<std::int64_t> Tokenizer::token_of(std::string_view /*piece*/) const { return {}; }

std::optional<std::int64_t> find_special(const Tokenizer& tokenizer, SpecialToken token) {
  static constexpr std::array<std::array<std::string_view, 6>, 5> kTexts{
      {{"<s>", "[CLS]", "<|begin_of_text|>", "<bos>", "<|startoftext|>", "<|endoftext|>"},
       {"</s>", "[SEP]", "<|end_of_text|>", "<eos>", "<|endoftext|>", "<|im_end|>"},
       {"[MASK]", "<mask>"},
       {"[PAD]", "<pad>", "<|pad|>", "<|finetune_right_pad_id|>", "<|endoftext|>"},
       {"[UNK]", "<unk>", "<|endoftext|>"}}};
  for (const std::string_view text : kTexts[std::size_t(token)])
    if (const auto found = text.empty() ? std::optional<std::int64_t>() : tokenizer.token_of(text)) return found;
  return {};
}

std::unique_ptr<Tokenizer> byte_tokenizer() { return std::make_unique<Bytes>(); }

std::unique_ptr<Tokenizer> number_tokenizer(Index vocabulary) { return std::make_unique<Numbers>(vocabulary); }

std::unique_ptr<Tokenizer> word_tokenizer(std::vector<std::string> words) { return std::make_unique<Words>(std::move(words)); }

std::unique_ptr<Tokenizer> tokenizer_from(std::string_view json, const std::string& name, Index vocabulary) {
  if (json.empty()) return number_tokenizer(vocabulary);
  const Json parts = Json::parse(json, name);
  try {
    std::unique_ptr<Tokenizer> tokenizer = parsed(parts, json, vocabulary);
    if (!tokenizer) return number_tokenizer(vocabulary);
    require(tokenizer->vocabulary() <= vocabulary, "vocabulary", "expected at most ", vocabulary,
            " tokens, which is what the model has, got ", tokenizer->vocabulary());
    return tokenizer;
  } catch (const Error& problem) {
    throw Error(name + ": " + problem.what());
  }
}

}  // namespace isomer

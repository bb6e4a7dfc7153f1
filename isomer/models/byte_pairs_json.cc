// tokenizer.json of Hugging Face, as far as it is byte-level byte pairs.
#include <algorithm>
#include <unordered_map>

#include "isomer/base/error.h"
#include "isomer/models/byte_pairs.h"

namespace isomer {

namespace {
// More than any vocabulary; numbers of tokens take memory.
constexpr std::int64_t kMostTokens = 1 << 24;
constexpr int kBytes = 256;

/// Of U+0000 … U+07FF.
std::string utf8(int character) {
  if (character < 0x80) return {char(character)};
  return {char(0xc0 | (character >> 6)), char(0x80 | (character & 0x3f))};
}

bool printable(int byte) { return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae; }

/// Every byte as the character that stands for it (GPT-2): printable ones for themselves, the others from U+0100 on.
const std::vector<std::string>& byte_characters() {
  static const auto kAll = [] {
    std::vector<std::string> all;
    int next = 0x100;
    for (int byte = 0; byte < kBytes; ++byte) all.push_back(utf8(printable(byte) ? byte : next++));
    return all;
  }();
  return kAll;
}

std::string written(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += byte_characters()[static_cast<unsigned char>(byte)];
  return text;
}

/// The bytes of a token as the vocabulary writes it.
std::string bytes_of(const std::string& token) {
  static const auto kBytesOf = [] {
    std::unordered_map<std::string, char> all;
    for (std::size_t byte = 0; byte < kBytes; ++byte) all.emplace(byte_characters()[byte], char(byte));
    return all;
  }();
  std::string bytes;
  for (std::size_t at = 0, size = 0; at < token.size(); at += size) {
    size = (static_cast<unsigned char>(token[at]) & 0x80) == 0 ? 1 : 2;
    const auto found = kBytesOf.find(token.substr(at, size));
    require(found != kBytesOf.end(), "vocab", "expected characters that stand for bytes, got ", token);
    bytes += found->second;
  }
  return bytes;
}

std::string kind_of(const Json& step) {
  const Json* type = step.is_object() ? step.find("type") : nullptr;
  return type != nullptr && type->is_string() ? type->text() : step.dump();
}

/// What would change the tokens in a way that is not ours.
void expect_none(const Json& json, const char* key) {
  const Json* member = json.find(key);
  if (member == nullptr || member->is_null() || *member == Json(false) || *member == Json("")) return;
  fail(key, "expected none, got ", kind_of(*member));
}

void expect_type(const Json& json, const char* key, const char* type) {
  const Json* member = json.find(key);
  const std::string got = member == nullptr || member->is_null() ? "none" : kind_of(*member);
  require(got == type, key, "expected ", type, ", got ", got);
}

bool flag(const Json& json, const char* key, bool fallback) {
  const Json* member = json.find(key);
  return member == nullptr ? fallback : member->boolean();
}

std::int32_t number_of(const Json& json) {
  const std::int64_t number = json.integer();
  require(number >= 0 && number < kMostTokens, "vocab", "expected numbers from 0 to ", kMostTokens - 1, ", got ", number);
  return std::int32_t(number);
}

struct Reader {
  internal::BytePairParts parts;
  std::unordered_map<std::string, std::int32_t> numbers;

  void put(std::int32_t number, std::string bytes) {
    if (std::size_t(number) >= parts.tokens.size()) parts.tokens.resize(std::size_t(number) + 1);
    parts.tokens[std::size_t(number)] = std::move(bytes);
  }

  void read_added(const Json& json) {
    const Json* all = json.find("added_tokens");
    if (all == nullptr) return;
    for (const Json& token : all->items()) {
      for (const char* key : {"lstrip", "rstrip", "single_word"}) expect_none(token, key);
      const std::string& text = token.at("content").text();
      require(!text.empty(), "added_tokens", "expected texts, got an empty one");
      const std::int32_t number = number_of(token.at("id"));
      parts.added.emplace_back(text, number);
      put(number, text);
    }
  }

  void read_vocabulary(const Json& model) {
    for (const auto& [token, number] : model.at("vocab").members()) {
      const std::int32_t id = number_of(number);
      require(numbers.emplace(token, id).second, "vocab", "expected different tokens, got ", token, " twice");
      const bool special = std::ranges::any_of(parts.added, [id](const auto& added) { return added.second == id; });
      if (!special) put(id, bytes_of(token));
    }
  }

  [[nodiscard]] std::int32_t find(const std::string& token) const {
    const auto found = numbers.find(token);
    require(found != numbers.end(), "merges", "expected tokens of the vocabulary, got ", token);
    return found->second;
  }

  void read_merges(const Json& model) {
    for (const Json& merge : model.at("merges").items()) {
      std::string left, right;
      if (merge.is_string()) {
        const std::size_t space = merge.text().find(' ');
        require(space != std::string::npos, "merges", "expected two tokens, got ", merge.text());
        left = merge.text().substr(0, space);
        right = merge.text().substr(space + 1);
      } else {
        require(merge.items().size() == 2, "merges", "expected two tokens, got ", merge.items().size());
        left = merge.items()[0].text();
        right = merge.items()[1].text();
      }
      parts.merges.push_back({find(left), find(right), find(left + right)});
    }
  }
};
}  // namespace

std::vector<unsigned char> internal::bytes_in_order() {
  std::vector<unsigned char> bytes;
  for (int byte = 0; byte < kBytes; ++byte) bytes.push_back(static_cast<unsigned char>(byte));
  std::ranges::sort(bytes, [](unsigned char a, unsigned char b) { return byte_characters()[a] < byte_characters()[b]; });
  return bytes;
}

std::string internal::byte_pairs_json(const BytePairParts& parts) {
  const auto token = [&](std::int64_t number) { return Json(written(parts.tokens[std::size_t(number)])).dump(); };
  std::string added, vocabulary, merges;
  const auto next = [](std::string& list, const std::string& item) { list += (list.empty() ? "\n   " : ",\n   ") + item; };
  for (const auto& [text, number] : parts.added) {
    const std::string name = Json(text).dump(), id = std::to_string(number);
    next(added, R"({"id": )" + id + R"(, "content": )" + name +
                    R"(, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})");
    next(vocabulary, name + ": " + id);
  }
  for (std::size_t i = parts.added.size(); i < parts.tokens.size(); ++i)
    next(vocabulary, token(std::int64_t(i)) + ": " + std::to_string(i));
  for (const Merge& merge : parts.merges) next(merges, "[" + token(merge.left) + ", " + token(merge.right) + "]");
  const std::string step = R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";
  return R"({
 "version": "1.0",
 "truncation": null,
 "padding": null,
 "added_tokens": [)" +
         added + R"(],
 "normalizer": null,
 "pre_tokenizer": )" +
         step + R"(,
 "post_processor": null,
 "decoder": )" +
         step +
         R"(,
 "model": {
  "type": "BPE",
  "dropout": null,
  "unk_token": null,
  "continuing_subword_prefix": null,
  "end_of_word_suffix": null,
  "fuse_unk": false,
  "byte_fallback": false,
  "ignore_merges": false,
  "vocab": {)" +
         vocabulary + R"(},
  "merges": [)" +
         merges + "]\n }\n}\n";
}

std::unique_ptr<Tokenizer> byte_pairs_from(const Json& json, std::string_view text) {
  const Json& model = json.at("model");
  expect_type(json, "model", "BPE");
  expect_none(json, "normalizer");
  expect_type(json, "pre_tokenizer", "ByteLevel");
  expect_type(json, "decoder", "ByteLevel");
  // Of positions only, which nobody asks for here.
  if (const Json* after = json.find("post_processor"); after != nullptr && !after->is_null())
    expect_type(json, "post_processor", "ByteLevel");
  for (const char* key :
       {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges"})
    expect_none(model, key);
  Reader reader;
  reader.parts.json = text;
  reader.parts.prefix_space = flag(json.at("pre_tokenizer"), "add_prefix_space", true);
  reader.parts.pattern = flag(json.at("pre_tokenizer"), "use_regex", true);
  reader.read_added(json);
  reader.read_vocabulary(model);
  reader.read_merges(model);
  return internal::make_byte_pairs(std::move(reader.parts));
}

}  // namespace isomer

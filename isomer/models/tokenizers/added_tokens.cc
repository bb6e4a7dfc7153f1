#include "isomer/models/tokenizers/added_tokens.h"

#include "isomer/io/unicode.h"
#include "isomer/models/tokenizers/json_parts.h"
#include "isomer/models/tokenizers/vocabulary.h"

namespace isomer::tokenizers {

namespace {
// Finding them takes time that grows with their length; real ones have some tens of bytes.
constexpr std::size_t kLongest = 4096;

/// Where the last character of a text that is not empty begins.
std::size_t last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}

/// White space at the end of a text, in bytes.
std::size_t space_behind(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t at = last_character(text.substr(0, end));
    if (!is_white_space(first_code_point(text.substr(at, end - at)).value)) break;
    end = at;
  }
  return text.size() - end;
}

std::size_t space_in_front(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint c = first_code_point(text.substr(at));
    if (!is_white_space(c.value)) break;
    at += c.bytes;
  }
  return at;
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  const std::string_view before = text.substr(0, begin), behind = text.substr(end);
  if (!before.empty() && is_word(first_code_point(before.substr(last_character(before))).value)) return false;
  return behind.empty() || !is_word(first_code_point(behind).value);
}
}  // namespace

std::vector<AddedToken> added_tokens_from(const Json& json) {
  std::vector<AddedToken> tokens;
  const Json* all = member(json, "added_tokens");
  if (all == nullptr) return tokens;
  for (const Json& token : all->items()) {
    AddedToken& next = tokens.emplace_back();
    next.text = token.at("content").text();
    require(!next.text.empty(), "added_tokens", "expected texts, got an empty one");
    require(next.text.size() <= kLongest, "added_tokens", "expected texts of at most ", kLongest, " bytes, got one of ",
            next.text.size());
    next.number = token_number(token.at("id"));
    next.special = flag(token, "special", false);
    next.left_strip = flag(token, "lstrip", false);
    next.right_strip = flag(token, "rstrip", false);
    next.single_word = flag(token, "single_word", false);
    next.normalized = flag(token, "normalized", !next.special);
  }
  return tokens;
}

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::vector<Prefixes::Entry> entries;
  for (std::size_t i = 0; i < tokens_.size(); ++i) entries.emplace_back(tokens_[i].text, std::int32_t(i));
  prefixes_ = Prefixes(std::move(entries));
}

std::vector<AddedTokenFinder::Part> AddedTokenFinder::split(std::string_view text) const {
  std::vector<Part> parts;
  // What stands before has been given out.
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !prefixes_.empty();) {
    const Prefixes::Longest found = prefixes_.begins(text[at]) ? prefixes_.longest(text.substr(at)) : Prefixes::Longest{};
    if (found.size == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[std::size_t(found.number)];
    std::size_t begin = at, end = at + found.size;
    at = end;
    if (token.single_word && !stands_alone(text, begin, end)) continue;
    if (token.left_strip && begin > done) begin -= space_behind(text.substr(done, begin - done));
    if (token.right_strip) end += space_in_front(text.substr(end));
    if (begin > done) parts.push_back({text.substr(done, begin - done)});
    parts.push_back({text.substr(begin, end - begin), token.number});
    done = end;
  }
  if (done < text.size()) parts.push_back({text.substr(done)});
  return parts;
}

}  // namespace isomer::tokenizers

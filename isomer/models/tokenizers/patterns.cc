#include "isomer/models/tokenizers/patterns.h"

#include <algorithm>
#include <array>

#include "isomer/base/error.h"
#include "isomer/io/unicode.h"
#include "isomer/io/utf8.h"
#include "isomer/models/tokenizers/json_parts.h"

namespace isomer::tokenizers {

namespace {
constexpr std::array<std::string_view, 7> kEnds{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

/// How many bytes of the text are of a class, from its beginning.
std::size_t run_of(std::string_view text, CharacterClass kind) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8 c = first_character(text.substr(at));
    if (c.kind != kind) break;
    at += c.bytes;
  }
  return at;
}

/// White space, but for the last character of it if something follows, which belongs to that.
std::size_t spaces_of(std::string_view text) {
  std::size_t at = 0, last = 0;
  while (at < text.size()) {
    const Utf8 c = first_character(text.substr(at));
    if (c.kind != CharacterClass::space) return last > 0 ? last : at;
    last = at;
    at += c.bytes;
  }
  return at;
}

std::size_t gpt2_word(std::string_view text) {
  for (const std::string_view end : kEnds)
    if (text.starts_with(end)) return end.size();
  const std::size_t space = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  const CharacterClass kind = first_character(text.substr(space)).kind;
  if (kind != CharacterClass::space) return space + run_of(text.substr(space), kind);
  return spaces_of(text);
}

bool is_line_end(char c) { return c == '\r' || c == '\n'; }

/// (?i:'s|'t|'re|'ve|'m|'ll|'d), where the long s is an s, too.
std::size_t ending_of(std::string_view text) {
  if (text[0] != '\'' || text.size() < 2) return 0;
  if (text.starts_with("'\xc5\xbf")) return 3;
  const auto same = [](char a, char b) { return a == b || (b >= 'A' && b <= 'Z' && a == b + ('a' - 'A')); };
  for (const std::string_view end : kEnds)
    if (text.size() >= end.size() && std::equal(end.begin(), end.end(), text.begin(), same)) return end.size();
  return 0;
}

/// A character as the pattern of GPT-4 tells them apart.
Utf8 word_character(std::string_view text, bool marks) {
  Utf8 c = first_character(text);
  if (marks && c.kind == CharacterClass::other && c.valid && is_mark(first_code_point(text).value))
    c.kind = CharacterClass::letter;
  return c;
}

std::size_t letters_of(std::string_view text, bool marks) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8 c = word_character(text.substr(at), marks);
    if (c.kind != CharacterClass::letter) break;
    at += c.bytes;
  }
  return at;
}

std::size_t numbers_of(std::string_view text, std::size_t most) {
  std::size_t at = 0;
  for (std::size_t n = 0; at < text.size() && (most == 0 || n < most); ++n) {
    const Utf8 c = first_character(text.substr(at));
    if (c.kind != CharacterClass::number) break;
    at += c.bytes;
  }
  return at;
}

/// Others, and the ends of lines behind them.
std::size_t others_of(std::string_view text, bool marks) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8 c = word_character(text.substr(at), marks);
    if (c.kind != CharacterClass::other) break;
    at += c.bytes;
  }
  while (at > 0 && at < text.size() && is_line_end(text[at])) ++at;
  return at;
}

std::size_t gpt4_word(std::string_view text, const WordPattern& pattern) {
  if (const std::size_t ending = ending_of(text); ending > 0) return ending;
  const Utf8 first = word_character(text, pattern.marks);
  if (first.kind == CharacterClass::letter) return letters_of(text, pattern.marks);
  if (first.kind == CharacterClass::number) return numbers_of(text, pattern.digits);
  if (!is_line_end(text[0]))
    if (const std::size_t letters = letters_of(text.substr(first.bytes), pattern.marks); letters > 0)
      return first.bytes + letters;
  const std::size_t space = text[0] == ' ' ? 1 : 0;
  if (const std::size_t others = others_of(text.substr(space), pattern.marks); others > 0) return space + others;
  // White space up to the last end of a line in it, if there is one.
  const std::size_t size = run_of(text, CharacterClass::space);
  const std::size_t line_end = text.substr(0, size).find_last_of("\r\n");
  return line_end == std::string_view::npos ? spaces_of(text) : line_end + 1;
}
}  // namespace

std::size_t word_size(std::string_view text, const WordPattern& pattern) {
  return pattern.gpt2 ? gpt2_word(text) : gpt4_word(text, pattern);
}

Pattern::Pattern(const Json& json) {
  if (const Json* literal = json.find("String")) {
    literal_ = literal->text();
    require(!literal_.empty(), "pattern", "expected a text, got an empty one");
    return;
  }
  const std::string& regex = json.at("Regex").text();
  kind_ = Kind::words;
  if (regex == kGpt2Words)
    words_ = {};
  else if (regex == kLlama3Words)
    words_ = {.gpt2 = false, .digits = 3};
  else if (regex == kQwen2Words)
    words_ = {.gpt2 = false, .digits = 1};
  else if (regex == kQwen35Words)
    words_ = {.gpt2 = false, .digits = 1, .marks = true};
  else if (regex == " {2,}")
    kind_ = Kind::spaces, least_ = 2;
  else if (regex == " +")
    kind_ = Kind::spaces;
  else if (regex == "\\s+")
    kind_ = Kind::white_space;
  else if (regex == "\\p{N}" || regex == "\\p{N}{1,3}" || regex == "\\p{N}+")
    kind_ = Kind::numbers, most_ = regex.ends_with('+') ? 0 : regex.ends_with("3}") ? 3 : 1;
  else
    fail("pattern", "expected one of the expressions that are known (those of GPT-2, Llama 3 and Qwen), got ", regex);
}

std::size_t Pattern::match_size(std::string_view text) const {
  switch (kind_) {
    case Kind::literal: return text.starts_with(literal_) ? literal_.size() : 0;
    case Kind::words: return word_size(text, words_);
    case Kind::spaces: return std::min(text.find_first_not_of(' '), text.size());
    case Kind::white_space: return run_of(text, CharacterClass::space);
    case Kind::numbers: return numbers_of(text, most_);
  }
  return 0;
}

std::vector<Match> Pattern::matches(std::string_view text) const {
  std::vector<Match> all;
  const auto add = [&](std::size_t end, bool found) {
    const std::size_t begin = all.empty() ? 0 : all.back().end;
    if (end > begin) all.push_back({begin, end, found});
  };
  for (std::size_t at = 0; at < text.size();) {
    if (kind_ == Kind::literal) at = std::min(text.find(literal_, at), text.size());
    const std::size_t size = at < text.size() ? match_size(text.substr(at)) : 0;
    if (size >= least_) {
      add(at, false);
      add(at + size, true);
    }
    at += size > 0 ? size : at < text.size() ? first_character(text.substr(at)).bytes : 0;
  }
  add(text.size(), false);
  return all;
}

Behavior behavior_from(const Json& json) {
  const std::string& name = json.text();
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  fail("behavior", "expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous, got ", name);
}

std::vector<Match> put_together(const std::vector<Match>& matches, Behavior behavior) {
  std::vector<Match> pieces;
  for (std::size_t i = 0; i < matches.size(); ++i) {
    const Match& match = matches[i];
    const bool match_before = i > 0 && matches[i - 1].found;
    bool joins = false;
    switch (behavior) {
      case Behavior::removed:
        if (match.found) continue;
        break;
      case Behavior::isolated: break;
      case Behavior::merged_with_previous: joins = i > 0 && match.found && !match_before; break;
      case Behavior::merged_with_next: joins = match_before && !match.found; break;
      case Behavior::contiguous: joins = i > 0 && match.found == match_before; break;
    }
    if (joins)
      pieces.back().end = match.end;
    else
      pieces.push_back(match);
  }
  return pieces;
}

}  // namespace isomer::tokenizers

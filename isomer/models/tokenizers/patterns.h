#pragma once
// What the steps of a tokenizer.json look for in a text: a literal text, or one of the regular expressions that real models have.
// There are few of them, and each is written by hand here; another one is refused.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/io/json.h"

namespace isomer::tokenizers {

// The expressions that cut words: those of GPT-2, of Llama 3 (which is that of GPT-4), of Qwen 2 and 3, and of Qwen 3.5.
inline constexpr std::string_view kGpt2Words = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen35Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// A piece of a text, which the pattern matches or which stands between two matches.
struct Match {
  std::size_t begin = 0, end = 0;
  bool found = false;
};

/// The patterns that cut a text into words, each of which matches everywhere.
struct WordPattern {
  bool gpt2 = true;        // GPT-2's; false: that of GPT-4, which Llama 3 and Qwen have, too
  std::size_t digits = 0;  // GPT-4: at most so many in a word; 0: any number
  bool marks = false;      // GPT-4: are marks parts of words?
};
/// How many bytes the first word of a text has that is not empty.
[[nodiscard]] std::size_t word_size(std::string_view text, const WordPattern& pattern);

class Pattern {
 public:
  /// {"String": "…"} or {"Regex": "…"}. Throws Error, which quotes it, for an expression that is not known.
  explicit Pattern(const Json& json);
  /// Adjacent pieces that make up the text.
  [[nodiscard]] std::vector<Match> matches(std::string_view text) const;

 private:
  enum class Kind : unsigned char { literal, words, spaces, white_space, numbers };
  /// The bytes that match at the beginning of a text that is not empty; 0: none.
  [[nodiscard]] std::size_t match_size(std::string_view text) const;

  Kind kind_ = Kind::literal;
  std::string literal_ = {};
  WordPattern words_ = {};
  std::size_t least_ = 1, most_ = 0;  // repetitions; 0: any number
};

/// Which pieces of the matches remain, and how they are put together.
enum class Behavior : unsigned char { removed, isolated, merged_with_previous, merged_with_next, contiguous };
[[nodiscard]] Behavior behavior_from(const Json& json);
/// Matches in place of which only the pieces remain; `found` no longer means anything.
[[nodiscard]] std::vector<Match> put_together(const std::vector<Match>& matches, Behavior behavior);

}  // namespace isomer::tokenizers

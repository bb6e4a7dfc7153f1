#pragma once
// How tokens become a text again: steps in order, as `decoder` of a tokenizer.json lists them. Every token goes through them by
// itself; what concerns only the beginning of a text is said apart, so that a text may be decoded piece by piece.
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "isomer/io/json.h"
#include "isomer/models/tokenizers/patterns.h"

namespace isomer::tokenizers {

/// The bytes that GPT-2's characters stand for.
struct BytesDecode {};
/// <0x0A> is the byte.
struct FallbackDecode {};
/// Spaces between words; pieces of a word begin with `prefix`. `cleanup`: no spaces in front of punctuation and endings.
struct WordPieceDecode {
  std::string prefix = "##";
  bool cleanup = true;
};
/// A character in place of spaces; `first`: the first token has none.
struct MetaspaceDecode {
  std::string space = "▁";
  bool first = true;
};
struct ReplaceDecode {
  Pattern pattern;
  std::string by;
};
/// So many of a character go from the beginning and the end of every token; `whole`: of the text.
struct StripDecode {
  std::string content;
  std::size_t start = 0, stop = 0;
  bool whole = false;
};
/// No decoder: tokens with spaces between them.
struct SpacesDecode {};
using DecodeStep =
    std::variant<BytesDecode, FallbackDecode, WordPieceDecode, MetaspaceDecode, ReplaceDecode, StripDecode, SpacesDecode>;

/// Throws Error for a step that is not one of these.
[[nodiscard]] std::vector<DecodeStep> decoders_from(const Json* json);
/// `first`: is it the beginning of a text?
[[nodiscard]] std::string decoded(std::span<const DecodeStep> steps, std::span<const std::string_view> pieces, bool first);

}  // namespace isomer::tokenizers

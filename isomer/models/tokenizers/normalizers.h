#pragma once
// What is done to a text before it is cut: steps in order, as `normalizer` of a tokenizer.json lists them.
//
//   const std::vector<NormalStep> steps = normalizers_from(json.find("normalizer"));
//   const std::string text = normalized(steps, "H\u00e9llo");           // hello, for BERT
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "isomer/io/json.h"
#include "isomer/io/unicode.h"
#include "isomer/models/tokenizers/character_map.h"
#include "isomer/models/tokenizers/patterns.h"

namespace isomer::tokenizers {

struct LowerCase {};
/// All marks go.
struct StripAccents {};
/// White space at the ends.
struct Strip {
  bool left = true, right = true;
};
/// In front of a text that is not empty.
struct Prepend {
  std::string text;
};
struct Replace {
  Pattern pattern;
  std::string by;
};
/// BERT: control characters go and white space becomes spaces; spaces around Chinese characters; marks go; lower case.
struct BertText {
  bool clean = true, chinese = true, accents = true, lower = true;
};

using NormalStep = std::variant<NormalForm, LowerCase, StripAccents, Strip, Prepend, Replace, BertText, CharacterMap>;

/// Null: none. Throws Error for a step that is not one of these.
[[nodiscard]] std::vector<NormalStep> normalizers_from(const Json* json);
/// Of a text that is UTF-8. Throws Error when it becomes far longer than any of these steps makes one.
[[nodiscard]] std::string normalized(std::span<const NormalStep> steps, std::string text);

}  // namespace isomer::tokenizers

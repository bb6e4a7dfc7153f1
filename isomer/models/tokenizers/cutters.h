#pragma once
// How a text is cut into the pieces that a model of tokens gets one by one: steps in order, as `pre_tokenizer` of a
// tokenizer.json lists them. Each step cuts the pieces of the one before.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "isomer/io/json.h"
#include "isomer/models/tokenizers/patterns.h"

namespace isomer::tokenizers {

/// GPT-2: a space in front of a piece that begins with none, then its pattern. Bytes stay bytes here.
struct ByteLevelCut {
  bool prefix_space = true, pattern = true;
};
struct SplitCut {
  Pattern pattern;
  Behavior behavior = Behavior::isolated;
  bool invert = false;
};
/// Runs of digits, or single ones.
struct DigitCut {
  bool individual = false;
};
/// Words between white space, and punctuation by itself.
struct BertCut {};
struct PunctuationCut {
  Behavior behavior = Behavior::isolated;
};
/// Words between white space; `words`: and what is not of letters and digits in them by itself.
struct WhiteSpaceCut {
  bool words = false;
};
/// SentencePiece: a character in place of spaces, and in front of the first word; words begin with it.
struct MetaspaceCut {
  enum class Prepend : unsigned char { always, first, never };
  std::string space = "▁";
  Prepend prepend = Prepend::always;
  bool split = true;
};
using CutStep = std::variant<ByteLevelCut, SplitCut, DigitCut, BertCut, PunctuationCut, WhiteSpaceCut, MetaspaceCut>;

/// A text and the pieces of it that are left.
struct Pieces {
  struct Piece {
    std::size_t begin = 0, end = 0;
  };
  std::string text = {};
  std::vector<Piece> all = {};
  bool first = true;  // does it stand at the beginning of what is encoded?
};

/// Null: none. Throws Error for a step that is not one of these.
[[nodiscard]] std::vector<CutStep> cutters_from(const Json* json);
void cut(std::span<const CutStep> steps, Pieces& pieces);

[[nodiscard]] MetaspaceCut metaspace_from(const Json& json);

}  // namespace isomer::tokenizers

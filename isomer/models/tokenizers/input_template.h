#pragma once
// The special tokens around what a model is given: `post_processor` of a tokenizer.json.
#include <cstdint>
#include <span>
#include <vector>

#include "isomer/io/json.h"
#include "isomer/models/tokenizer.h"
#include "isomer/models/tokenizers/vocabulary.h"

namespace isomer::tokenizers {

struct InputTemplate {
  /// A text, or special tokens, and the type that the tokens get.
  struct Part {
    enum class Kind : unsigned char { first, second, special };
    Kind kind = Kind::first;
    std::int64_t type = 0;
    std::vector<std::int64_t> tokens = {};
  };
  std::vector<Part> single = {{}};
  std::vector<Part> pair = {{}, {.kind = Part::Kind::second, .type = 1}};

  [[nodiscard]] static TokenizerInput filled(std::span<const Part> parts, std::span<const std::int64_t> first,
                                             std::span<const std::int64_t> second);
};

/// Null: nothing around a text. Throws Error for a step that is not known, or for two that add tokens.
[[nodiscard]] InputTemplate input_template_from(const Json* json);

}  // namespace isomer::tokenizers

#pragma once
// Tokens that stand for themselves, such as [MASK] and <|im_start|>: they are found in a text before anything else is done to it,
// or, those that are `normalized`, after its normal form is made. Of several at one place the longest is taken.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/io/json.h"
#include "isomer/models/tokenizers/prefixes.h"

namespace isomer::tokenizers {

struct AddedToken {
  std::string text;
  std::int32_t number = 0;
  bool special = false;
  bool left_strip = false, right_strip = false;  // does it take the white space beside it?
  bool single_word = false;                      // only where no letter or digit stands beside it
  bool normalized = false;
};

/// The members `added_tokens` of a tokenizer.json.
[[nodiscard]] std::vector<AddedToken> added_tokens_from(const Json& json);

class AddedTokenFinder {
 public:
  AddedTokenFinder() = default;
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);

  /// A piece of the text: an added token, or what stands between them.
  struct Part {
    std::string_view text;
    std::int32_t token = -1;  // -1: none
  };
  /// None of them is empty.
  [[nodiscard]] std::vector<Part> split(std::string_view text) const;

 private:
  std::vector<AddedToken> tokens_ = {};
  Prefixes prefixes_ = {};  // numbers are places in tokens_
};

}  // namespace isomer::tokenizers

#pragma once
// What is asked, as JSON:
//
//   const Question question = question_of(R"({
//     "preset": "gla", "settings": {"heads": "2"}, "text": "the cat sat", "layer": 0, "head": 1, "token": 2, "other": "dog"
//   })");
//
// Without a preset it is the run that the program was given. Only `text` must be there.
#include <optional>
#include <string>
#include <string_view>

#include "isomer/explore/looks.h"

namespace isomer {

struct Question {
  std::optional<std::string> preset = {};
  Settings settings = {};
  std::string text;
  Where where = {};
};

/// Throws Error for what is not JSON, is not known (naming the nearest), is of another kind, or is not there.
[[nodiscard]] Question question_of(std::string_view json);

}  // namespace isomer

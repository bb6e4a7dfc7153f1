#pragma once
// What reading the parts of a tokenizer.json has in common. Members that are null are as good as none.
#include <string>
#include <string_view>

#include "isomer/base/error.h"
#include "isomer/io/json.h"

namespace isomer::tokenizers {

/// Null: there is none.
[[nodiscard]] inline const Json* member(const Json& json, std::string_view key) {
  const Json* found = json.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

[[nodiscard]] inline bool flag(const Json& json, std::string_view key, bool fallback) {
  const Json* found = member(json, key);
  return found == nullptr ? fallback : found->boolean();
}

[[nodiscard]] inline std::string text_of(const Json& json, std::string_view key, std::string_view fallback) {
  const Json* found = member(json, key);
  return found == nullptr ? std::string(fallback) : found->text();
}

/// What a step is called; a text for an error if it is not called anything.
[[nodiscard]] inline std::string kind_of(const Json& step) {
  const Json* type = step.is_object() ? step.find("type") : nullptr;
  return type != nullptr && type->is_string() ? type->text() : step.dump().substr(0, 80);
}

/// A step, or the steps of a sequence, within which there may be others.
template <class F>
void each_step(const Json& step, std::string_view list, F&& read) {
  if (kind_of(step) == "Sequence")
    for (const Json& part : step.at(list).items()) each_step(part, list, read);
  else
    read(step);
}

}  // namespace isomer::tokenizers

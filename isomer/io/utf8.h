#pragma once
// Characters of a text in UTF-8 and their classes in Unicode (utf8proc).
//
//   for (Utf8 c; !text.empty(); text.remove_prefix(c.bytes)) {
//     c = first_character(text);
//     if (c.kind == CharacterClass::letter) letters += text.substr(0, c.bytes);
//   }
#include <cstddef>
#include <string_view>

namespace isomer {

enum class CharacterClass : unsigned char { letter, number, space, other };

/// One character; or one byte that begins none, which is of the class `other`.
struct Utf8 {
  std::size_t bytes = 0;
  CharacterClass kind = CharacterClass::other;
  bool valid = true;
};

/// Of a text that is not empty.
[[nodiscard]] Utf8 first_character(std::string_view text);
/// Where the first byte stands that is not part of UTF-8; npos: nowhere.
[[nodiscard]] std::size_t first_not_utf8(std::string_view text);

}  // namespace isomer

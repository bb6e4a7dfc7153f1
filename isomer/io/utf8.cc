#include "isomer/io/utf8.h"

#include <utf8proc.h>

#include <array>

namespace isomer {

namespace {
CharacterClass class_of(utf8proc_int32_t character) {
  switch (utf8proc_category(character)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharacterClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CharacterClass::number;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return CharacterClass::space;
    default: break;
  }
  // The control characters among White_Space.
  const bool space = (character >= '\t' && character <= '\r') || character == 0x85;
  return space ? CharacterClass::space : CharacterClass::other;
}

/// Most characters of most texts.
constexpr int kAscii = 128;
const std::array<CharacterClass, kAscii>& ascii_classes() {
  static const auto kClasses = [] {
    std::array<CharacterClass, kAscii> all{};
    for (int c = 0; c < kAscii; ++c) all[std::size_t(c)] = class_of(c);
    return all;
  }();
  return kClasses;
}
}  // namespace

Utf8 first_character(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  if (byte < kAscii) return {1, ascii_classes()[byte], true};
  utf8proc_int32_t character = 0;
  const utf8proc_ssize_t size =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), utf8proc_ssize_t(text.size()), &character);
  if (size <= 0) return {1, CharacterClass::other, false};
  return {std::size_t(size), class_of(character), true};
}

std::size_t first_not_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8 c = first_character(text.substr(at));
    if (!c.valid) return at;
    at += c.bytes;
  }
  return std::string_view::npos;
}

}  // namespace isomer

#pragma once
// Characters as numbers, what they are, and the normal forms of a text (utf8proc, whose version of Unicode this is).
//
//   for (CodePoint c; !text.empty(); text.remove_prefix(c.bytes)) {
//     c = first_code_point(text);
//     if (!is_mark(c.value)) append_lower_case(to, c.value);
//   }
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace isomer {

constexpr char32_t kReplacement = 0xfffd;

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;
  bool valid = true;
};

/// Of a text that is not empty. What is not UTF-8 is U+FFFD, once for what could have begun one character, as in Python.
[[nodiscard]] CodePoint first_code_point(std::string_view text);
void append_utf8(std::string& to, char32_t character);
/// The text with U+FFFD in place of what is not UTF-8.
[[nodiscard]] std::string valid_utf8(std::string_view text);

enum class NormalForm : unsigned char { nfc, nfd, nfkc, nfkd };
/// Of a text that is UTF-8. Linear in its length, but for the marks that follow one letter, which are sorted.
[[nodiscard]] std::string normal_form(std::string_view text, NormalForm form);

/// Of a single character, whatever stands around it.
void append_lower_case(std::string& to, char32_t character);
/// White_Space.
[[nodiscard]] bool is_white_space(char32_t character);
/// Categories P*, N* and M*; of marks, those that take no room of their own (Mn); what \w matches.
[[nodiscard]] bool is_punctuation(char32_t character);
[[nodiscard]] bool is_numeric(char32_t character);
[[nodiscard]] bool is_mark(char32_t character);
[[nodiscard]] bool is_nonspacing_mark(char32_t character);
[[nodiscard]] bool is_word(char32_t character);
/// Control, format and private use: Cc, Cf, Co.
[[nodiscard]] bool is_control(char32_t character);

}  // namespace isomer

#include "isomer/io/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "isomer/base/error.h"

namespace isomer {

namespace {
utf8proc_category_t category_of(char32_t c) { return utf8proc_category(utf8proc_int32_t(c)); }

bool is_between(utf8proc_category_t category, utf8proc_category_t first, utf8proc_category_t last) {
  return category >= first && category <= last;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// How many bytes could have begun one character: at least one, and no more than a decoder reads before it knows better.
std::size_t broken_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0xc2 || lead > 0xf4) return 1;
  const std::size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second byte must not make it overlong, a surrogate, or beyond U+10FFFF.
  const unsigned least = lead == 0xe0   ? 0xa0
                         : lead == 0xf0 ? 0x90
                                        : 0x80,
                 most = lead == 0xed   ? 0x9f
                        : lead == 0xf4 ? 0x8f
                                       : 0xbf;
  std::size_t at = 1;
  while (at < size && at < text.size() && byte(at) >= (at == 1 ? least : 0x80) && byte(at) <= (at == 1 ? most : 0xbf)) ++at;
  return at;
}

using Characters = std::vector<utf8proc_int32_t>;

Characters decomposed(std::string_view text, int options) {
  Characters all;
  all.reserve(text.size());
  constexpr int kMost = 32;  // the longest decomposition has 18
  utf8proc_int32_t parts[kMost];
  int boundary = UTF8PROC_BOUNDCLASS_START;
  for (CodePoint c; !text.empty(); text.remove_prefix(c.bytes)) {
    c = first_code_point(text);
    const auto n = utf8proc_decompose_char(utf8proc_int32_t(c.value), parts, kMost, utf8proc_option_t(options), &boundary);
    ISOMER_ASSERT(n >= 0 && n <= kMost, "a character decomposes into a few");
    all.insert(all.end(), parts, parts + n);
  }
  return all;
}

/// Marks that follow each other, by their combining class. utf8proc's own way is quadratic in their number.
void sort_marks(Characters& all) {
  const auto rank = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (all[at] < 0x300 || rank(all[at]) == 0) continue;
    std::size_t end = at + 1;
    while (end < all.size() && rank(all[end]) != 0) ++end;
    if (end - at > 1)
      std::ranges::stable_sort(all.begin() + std::ptrdiff_t(at), all.begin() + std::ptrdiff_t(end), std::less<>(), rank);
    at = end;
  }
}
}  // namespace

CodePoint first_code_point(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  if (byte < 0x80) return {byte, 1, true};
  utf8proc_int32_t character = 0;
  const utf8proc_ssize_t size =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), utf8proc_ssize_t(text.size()), &character);
  if (size <= 0) return {kReplacement, broken_bytes(text), false};
  return {char32_t(character), std::size_t(size), true};
}

void append_utf8(std::string& to, char32_t character) {
  if (character < 0x80) {
    to += char(character);
    return;
  }
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(utf8proc_int32_t(character), bytes);
  to.append(reinterpret_cast<const char*>(bytes), std::size_t(size));
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (CodePoint c; !text.empty(); text.remove_prefix(c.bytes)) {
    c = first_code_point(text);
    if (c.valid)
      valid += text.substr(0, c.bytes);
    else
      append_utf8(valid, kReplacement);
  }
  return valid;
}

std::string normal_form(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const bool composed = form == NormalForm::nfc || form == NormalForm::nfkc;
  const int kind = UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : 0);
  Characters all = decomposed(text, kind | UTF8PROC_DECOMPOSE);
  sort_marks(all);
  auto size = utf8proc_ssize_t(all.size());
  if (composed) size = utf8proc_normalize_utf32(all.data(), size, utf8proc_option_t(kind | UTF8PROC_COMPOSE));
  std::string result;
  result.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < size; ++i) append_utf8(result, char32_t(all[std::size_t(i)]));
  return result;
}

void append_lower_case(std::string& to, char32_t character) {
  if (character < 0x80) {
    to += char(character >= 'A' && character <= 'Z' ? character + ('a' - 'A') : character);
    return;
  }
  append_utf8(to, char32_t(utf8proc_tolower(utf8proc_int32_t(character))));
  // The only one that becomes two: i with a dot above.
  if (character == 0x130) append_utf8(to, 0x307);
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || is_between(category_of(c), UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP);
}

bool is_punctuation(char32_t c) { return is_between(category_of(c), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO); }

bool is_numeric(char32_t c) { return is_between(category_of(c), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO); }

bool is_mark(char32_t c) { return is_between(category_of(c), UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME); }

bool is_nonspacing_mark(char32_t c) { return c >= 0x300 && category_of(c) == UTF8PROC_CATEGORY_MN; }

bool is_word(char32_t c) {
  const utf8proc_category_t category = category_of(c);
  if (is_between(category, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC) return true;
  // Letters in circles and squares, which are symbols, and the two that join letters.
  const bool letter = (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
                      (c >= 0x1f170 && c <= 0x1f189);
  return letter || c == 0x200c || c == 0x200d;
}

bool is_control(char32_t c) {
  const utf8proc_category_t category = category_of(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

}  // namespace isomer

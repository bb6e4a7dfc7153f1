#include "isomer/models/tokenizers/character_map.h"

#include <utf8proc.h>

#include <array>

#include "isomer/base/error.h"
#include "isomer/io/unicode.h"

namespace isomer::tokenizers {

namespace {
constexpr const char* kCharacterMap = "precompiled_charsmap";
// Longer graphemes are looked up character by character.
constexpr std::size_t kLongestGrapheme = 5;

std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  static const auto kValues = [&] {
    std::array<int, 256> values{};
    values.fill(-1);
    for (std::size_t i = 0; i < kDigits.size(); ++i) values[static_cast<unsigned char>(kDigits[i])] = int(i);
    return values;
  }();
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t held = 0;
  int bits = 0;
  for (const char c : text) {
    const int value = kValues[static_cast<unsigned char>(c)];
    require(value >= 0, kCharacterMap, "expected base64, got ", c);
    held = (held << 6) | std::uint32_t(value);
    bits += 6;
    if (bits >= 8) bytes += char((held >> (bits -= 8)) & 0xff);
  }
  return bytes;
}

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  return value;
}

// A unit of the trie: a byte that leads to it, where its children are, whether a value is among them.
bool has_leaf(std::uint32_t unit) { return ((unit >> 8) & 1) != 0; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7fffffff; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000ff; }
std::uint32_t offset_of(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

/// The bytes of the first grapheme of a text that is not empty.
std::size_t grapheme_of(std::string_view text) {
  CodePoint last = first_code_point(text);
  utf8proc_int32_t state = 0;
  std::size_t at = last.bytes;
  while (at < text.size()) {
    const CodePoint next = first_code_point(text.substr(at));
    if (utf8proc_grapheme_break_stateful(utf8proc_int32_t(last.value), utf8proc_int32_t(next.value), &state)) break;
    at += next.bytes;
    last = next;
  }
  return at;
}
}  // namespace

CharacterMap::CharacterMap(std::string_view base64) {
  if (base64.empty()) return;
  const std::string bytes = from_base64(base64);
  require(bytes.size() >= 4, kCharacterMap, "expected at least 4 bytes, got ", bytes.size());
  const std::size_t size = little_endian(bytes);
  require(size % 4 == 0 && size > 0 && size <= bytes.size() - 4, kCharacterMap, "expected a trie of at most ", bytes.size() - 4,
          " bytes, got ", size);
  Map map;
  for (std::size_t at = 4; at < size + 4; at += 4) map.units.push_back(little_endian(std::string_view(bytes).substr(at)));
  map.texts = bytes.substr(size + 4);
  const std::size_t bad = [&] {
    for (std::string_view rest = map.texts; !rest.empty();) {
      const CodePoint c = first_code_point(rest);
      if (!c.valid) return map.texts.size() - rest.size();
      rest.remove_prefix(c.bytes);
    }
    return std::string::npos;
  }();
  require(bad == std::string::npos, kCharacterMap, "expected texts in UTF-8, got another byte at ", bad);
  map_ = std::make_shared<const Map>(std::move(map));
}

std::optional<std::string_view> CharacterMap::find(std::string_view part) const {
  std::size_t at = offset_of(map_->units[0]);
  for (const char byte : part) {
    const auto code = static_cast<unsigned char>(byte);
    at ^= code;
    if (code == 0 || at >= map_->units.size() || label_of(map_->units[at]) != code) return {};
    const std::uint32_t unit = map_->units[at];
    at ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    // The shortest that fits is the one that counts.
    if (at >= map_->units.size()) return {};
    const std::size_t begin = value_of(map_->units[at]);
    if (begin > map_->texts.size()) return {};
    const std::size_t end = map_->texts.find('\0', begin);
    return std::string_view(map_->texts).substr(begin, end == std::string::npos ? end : end - begin);
  }
  return {};
}

std::string CharacterMap::mapped(std::string_view text) const {
  std::string result;
  if (!map_) return std::string(text);
  result.reserve(text.size());
  while (!text.empty()) {
    std::string_view part = text.substr(0, grapheme_of(text));
    text.remove_prefix(part.size());
    if (part.size() <= kLongestGrapheme)
      if (const auto found = find(part)) {
        result += *found;
        continue;
      }
    while (!part.empty()) {
      const std::size_t size = first_code_point(part).bytes;
      const std::string_view character = part.substr(0, size);
      result += find(character).value_or(character);
      part.remove_prefix(size);
    }
  }
  return result;
}

}  // namespace isomer::tokenizers

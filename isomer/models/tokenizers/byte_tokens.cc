#include "isomer/models/tokenizers/byte_tokens.h"

#include <algorithm>

#include "isomer/io/unicode.h"

namespace isomer::tokenizers {

namespace {
constexpr int kBytes = 256;
constexpr std::string_view kHex = "0123456789ABCDEF";

bool is_printable(int byte) { return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae; }
}  // namespace

std::string byte_piece(unsigned byte) { return {'<', '0', 'x', kHex[byte / 16], kHex[byte % 16], '>'}; }

int byte_of(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  const std::size_t high = kHex.find(piece[3]), low = kHex.find(piece[4]);
  return high == std::string_view::npos || low == std::string_view::npos ? -1 : int(high * 16 + low);
}

ByteTokens::ByteTokens(bool used, const Vocabulary& vocabulary) : tokens_() {
  tokens_.fill(-1);
  if (!used) return;
  for (unsigned byte = 0; byte < kBytes; ++byte) tokens_[byte] = vocabulary.find(byte_piece(byte));
}

bool ByteTokens::have(std::string_view text) const {
  return std::ranges::all_of(text, [this](char byte) { return (*this)[byte] >= 0; });
}

bool ByteTokens::add_backwards(std::string_view text, std::vector<std::int64_t>& tokens) const {
  if (!have(text)) return false;
  for (std::size_t i = text.size(); i-- > 0;) tokens.push_back((*this)[text[i]]);
  return true;
}

const std::vector<std::string>& byte_characters() {
  static const auto kAll = [] {
    std::vector<std::string> all(kBytes);
    char32_t next = 0x100;
    for (int byte = 0; byte < kBytes; ++byte) append_utf8(all[std::size_t(byte)], is_printable(byte) ? char32_t(byte) : next++);
    return all;
  }();
  return kAll;
}

std::string written_bytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += byte_characters()[static_cast<unsigned char>(byte)];
  return text;
}

void append_written(std::string& to, std::string_view piece) {
  // By the number of the character; -1: it stands for no byte.
  static const auto kByteOf = [] {
    std::array<std::int16_t, 0x200> all{};
    all.fill(-1);
    for (std::size_t byte = 0; byte < kBytes; ++byte) all[first_code_point(byte_characters()[byte]).value] = std::int16_t(byte);
    return all;
  }();
  const std::size_t begin = to.size();
  for (std::string_view rest = piece; !rest.empty();) {
    const CodePoint c = first_code_point(rest);
    if (c.value >= kByteOf.size() || kByteOf[c.value] < 0) {
      to.resize(begin);
      to += piece;
      return;
    }
    to += char(kByteOf[c.value]);
    rest.remove_prefix(c.bytes);
  }
}

}  // namespace isomer::tokenizers

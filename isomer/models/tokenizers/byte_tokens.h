#pragma once
// Two ways in which vocabularies have tokens for single bytes: <0x0A>, which stand in for characters that have none
// (SentencePiece), and characters that stand for bytes (GPT-2).
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/models/tokenizers/vocabulary.h"

namespace isomer::tokenizers {

/// <0x0A>.
[[nodiscard]] std::string byte_piece(unsigned byte);
/// The byte of <0x0A>; -1: it is something else.
[[nodiscard]] int byte_of(std::string_view piece);

/// The tokens <0x00> … <0xFF> of a vocabulary.
class ByteTokens {
 public:
  /// Not `used`: there are none.
  ByteTokens(bool used, const Vocabulary& vocabulary);
  /// Has every byte of the text a token?
  [[nodiscard]] bool have(std::string_view text) const;
  [[nodiscard]] std::int32_t operator[](char byte) const { return tokens_[static_cast<unsigned char>(byte)]; }
  /// Adds the tokens of the bytes, the last one first; none if one of them has no token.
  bool add_backwards(std::string_view text, std::vector<std::int64_t>& tokens) const;

 private:
  std::array<std::int32_t, 256> tokens_;
};

/// Every byte as the character that stands for it: printable ones for themselves, the others from U+0100 on.
[[nodiscard]] const std::vector<std::string>& byte_characters();
[[nodiscard]] std::string written_bytes(std::string_view bytes);
/// Adds the bytes that a piece stands for; a piece with other characters stands for itself.
void append_written(std::string& to, std::string_view piece);

}  // namespace isomer::tokenizers

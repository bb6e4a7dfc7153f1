#pragma once
// The characters that a tokenizer of SentencePiece replaces, as it stores them: a trie in two arrays (Darts) and the texts that
// stand for what it finds. tokenizer.json has it as `precompiled_charsmap` of the normaliser Precompiled.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isomer::tokenizers {

class CharacterMap {
 public:
  /// Of base64; empty: nothing is replaced. Throws Error for what is no such map.
  explicit CharacterMap(std::string_view base64);

  /// Grapheme by grapheme where one is short and known, character by character elsewhere, as the package `tokenizers` does it.
  [[nodiscard]] std::string mapped(std::string_view text) const;

 private:
  struct Map {
    std::vector<std::uint32_t> units;
    std::string texts;  // each ends with a zero byte
  };
  [[nodiscard]] std::optional<std::string_view> find(std::string_view part) const;

  std::shared_ptr<const Map> map_;
};

}  // namespace isomer::tokenizers

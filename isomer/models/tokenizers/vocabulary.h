#pragma once
// The pieces of a vocabulary as tokenizer.json writes them, by number and by text.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "isomer/base/error.h"
#include "isomer/io/json.h"

namespace isomer::tokenizers {

// More than any vocabulary; numbers of tokens take memory.
constexpr std::int64_t kMostTokens = 1 << 24;

/// Throws Error for one that no vocabulary has.
[[nodiscard]] inline std::int32_t token_number(const Json& json) {
  const std::int64_t number = json.integer();
  require(number >= 0 && number < kMostTokens, "vocab", "expected numbers from 0 to ", kMostTokens - 1, ", got ", number);
  return std::int32_t(number);
}

class Vocabulary {
 public:
  /// A piece that comes again has its last number.
  void put(std::string_view piece, std::int32_t number) {
    name(piece, number);
    numbers_.insert_or_assign(std::string(piece), number);
  }
  /// An added token, which the model of pieces does not know, and what it is decoded as.
  void put_added(std::string_view piece, std::string_view decoded, std::int32_t number) {
    name(decoded, number);
    added_.insert_or_assign(std::string(piece), number);
  }
  /// -1: none.
  [[nodiscard]] std::int32_t find(std::string_view piece) const { return find(numbers_, piece); }
  /// Among added tokens, too.
  [[nodiscard]] std::int32_t find_any(std::string_view piece) const {
    const std::int32_t added = find(added_, piece);
    return added >= 0 ? added : find(piece);
  }
  [[nodiscard]] std::int32_t size() const { return std::int32_t(pieces_.size()); }
  /// By number; empty: none of that number.
  [[nodiscard]] const std::vector<std::string>& pieces() const { return pieces_; }
  [[nodiscard]] const auto& numbers() const { return numbers_; }

 private:
  struct Hash {
    using is_transparent = void;
    [[nodiscard]] std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Numbers = std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>>;

  [[nodiscard]] static std::int32_t find(const Numbers& numbers, std::string_view piece) {
    const auto found = numbers.find(piece);
    return found == numbers.end() ? -1 : found->second;
  }
  void name(std::string_view piece, std::int32_t number) {
    if (std::size_t(number) >= pieces_.size()) pieces_.resize(std::size_t(number) + 1);
    pieces_[std::size_t(number)] = piece;
  }

  std::vector<std::string> pieces_ = {};
  Numbers numbers_ = {}, added_ = {};
};

}  // namespace isomer::tokenizers

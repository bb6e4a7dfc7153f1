#pragma once
// Byte-level byte-pair encoding (Sennrich et al. 2016, Radford et al. 2019), in the tokenizer.json of Hugging Face: text is cut
// into words by the pattern of GPT-2, and neighbouring pieces of a word become one, the merge that was learned first first.
//
//   std::vector<std::string> documents{"low lower lowest", "new newer newest"};
//   const std::unique_ptr<Tokenizer> tokenizer = train_byte_pairs(documents, {.vocabulary = 8000});
//   write_text("tokenizer.json", tokenizer->to_json());
//   const auto same = tokenizer_from(read_text("tokenizer.json"), "tokenizer.json", 8000);
//
// Any bytes have tokens, and the tokens of a text decode to its bytes.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/index.h"
#include "isomer/models/tokenizer.h"

namespace isomer {

/// The words of a text by the pattern of GPT-2, one behind the other:
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
class WordCutter {
 public:
  explicit WordCutter(std::string_view text) : rest_(text) {}
  /// Empty at the end.
  [[nodiscard]] std::string_view next();

 private:
  std::string_view rest_;
};

struct BytePairOptions {
  Index vocabulary = 8000;                // the bytes, the special tokens and the merges; fewer if the text has no more pairs
  Index least = 2;                        // a pair that is there less often is not merged
  std::vector<std::string> special = {};  // tokens that stand for themselves, such as <|endoftext|>: the first ones
};

/// Of equally frequent pairs the one whose tokens came first is merged first. Throws Error for a vocabulary that has no room for
/// the bytes, and for special tokens that are empty or there twice.
[[nodiscard]] std::unique_ptr<Tokenizer> train_byte_pairs(std::span<const std::string> documents, const BytePairOptions& options);

namespace internal {
/// The 256 bytes in the order in which vocabularies begin: that of the characters that stand for them in tokenizer.json.
[[nodiscard]] std::vector<unsigned char> bytes_in_order();

/// A merge is a pair of tokens; the i-th makes the token `result`.
struct Merge {
  std::int32_t left, right, result;
};
struct BytePairParts {
  std::vector<std::string> tokens;  // their bytes, by number; special ones first
  std::vector<Merge> merges;        // in the order in which they were learned
  std::size_t special = 0;          // how many tokens are special
};
/// The text of tokenizer.json.
[[nodiscard]] std::string byte_pairs_json(const BytePairParts& parts);
}  // namespace internal

}  // namespace isomer

#pragma once
// Tokenizers of files that carry only their parts: GGUF (tokenizer.ggml.…) and the tokenizer.bin of llama2.c. They become what
// the tokenizer.json of the same model would be, and to_json() is that file.
//
//   const auto own = tokenizer_of_scores({.pieces = tokens, .scores = scores, .types = types, .begin = 1});
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/index.h"
#include "isomer/models/tokenizer.h"

namespace isomer {

/// tokenizer.ggml.token_type. Unknown, control and user-defined pieces are found in a text as they are.
enum class PieceType : std::int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

/// tokenizer.ggml.model = "gpt2": byte-level byte pairs.
struct MergedPieces {
  std::vector<std::string> pieces;                   // tokenizer.ggml.tokens
  std::vector<std::string> merges;                   // tokenizer.ggml.merges: two pieces and a space between them
  std::vector<std::int32_t> types = {};              // empty: all are normal
  std::string words = "default";                     // tokenizer.ggml.pre, how a text is cut; default: as in GPT-2
  std::optional<std::int64_t> begin = {}, end = {};  // what encode_input() puts around a text
};
/// Throws Error for a `words` that is not known, for parts that do not fit together, and for pieces that are not of the kind.
[[nodiscard]] std::unique_ptr<Tokenizer> tokenizer_of_merges(const MergedPieces& parts);

/// tokenizer.ggml.model = "llama": byte pairs of SentencePiece. Of all pairs of neighbours whose text is a piece the one with the
/// best score becomes one; characters that are no piece are bytes, <0x00> … <0xFF>.
struct ScoredPieces {
  std::vector<std::string> pieces;  // spaces are ▁
  std::vector<float> scores;
  std::vector<std::int32_t> types = {};  // empty: all are normal
  bool space_in_front = true;            // tokenizer.ggml.add_space_prefix
  std::optional<std::int64_t> begin = {}, end = {};
};
[[nodiscard]] std::unique_ptr<Tokenizer> tokenizer_of_scores(const ScoredPieces& parts);

/// tokenizer.bin of llama2.c: of so many pieces a score and a text. Throws Error "NAME: …" for a file that is cut off.
[[nodiscard]] std::unique_ptr<Tokenizer> llama2c_tokenizer(std::string_view file, const std::string& name, Index vocabulary);

}  // namespace isomer

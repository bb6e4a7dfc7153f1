#pragma once
// What gives a piece of a text its tokens: `model` of a tokenizer.json.
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "isomer/io/json.h"
#include "isomer/models/tokenizers/vocabulary.h"

namespace isomer::tokenizers {

class PieceModel {
 public:
  using Tokens = std::vector<std::int64_t>;
  /// What encoding needs besides the text; kept from piece to piece so that it need not be made again.
  struct Scratch {
    /// A part of a piece between its neighbours; gone (-1) when it has become part of the one before.
    struct Symbol {
      std::int32_t token, before, after;
    };
    /// The merge of a symbol with the next, as it was when it was found.
    struct Candidate {
      std::int32_t rank, at;
      [[nodiscard]] bool operator>(const Candidate& other) const {
        return rank != other.rank ? rank > other.rank : at > other.at;
      }
    };
    /// The best way to a place in a piece: the token that ends there.
    struct Step {
      double score = 0;
      std::int32_t begin = -1, token = -1;
    };
    std::vector<Symbol> symbols = {};
    std::vector<Candidate> heap = {};
    std::vector<Step> steps = {};
  };

  PieceModel() = default;
  virtual ~PieceModel() = default;
  PieceModel(const PieceModel&) = delete;
  PieceModel& operator=(const PieceModel&) = delete;

  /// As Tokenizer::name has it.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// How much of the beginning of a piece has tokens of its own, whatever follows: parts that come again are encoded once.
  [[nodiscard]] virtual std::size_t part_size(std::string_view piece) const { return piece.size(); }
  /// Adds the tokens of a piece that is not empty.
  virtual void encode(std::string_view piece, Tokens& tokens, Scratch& scratch) const = 0;
};

/// Each fills the vocabulary, which has to live as long as the model, and throws Error for a model that it cannot be.
/// `byte_level`: pieces are bytes, and the vocabulary writes them as GPT-2 does.
[[nodiscard]] std::unique_ptr<PieceModel> byte_pair_model(const Json& model, Vocabulary& vocabulary, bool byte_level);
[[nodiscard]] std::unique_ptr<PieceModel> word_piece_model(const Json& model, Vocabulary& vocabulary);
[[nodiscard]] std::unique_ptr<PieceModel> unigram_model(const Json& model, Vocabulary& vocabulary);

}  // namespace isomer::tokenizers

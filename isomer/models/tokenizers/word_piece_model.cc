// WordPiece (Schuster & Nakajima 2012, as in BERT): the longest piece that a word begins with, then the longest one that goes on.
#include "isomer/io/unicode.h"
#include "isomer/models/tokenizers/json_parts.h"
#include "isomer/models/tokenizers/piece_model.h"
#include "isomer/models/tokenizers/prefixes.h"

namespace isomer::tokenizers {

namespace {
class WordPieceModel final : public PieceModel {
 public:
  WordPieceModel(const Json& model, const Vocabulary& vocabulary)
      : unknown_name_(text_of(model, "unk_token", "[UNK]")), unknown_(vocabulary.find(unknown_name_)) {
    const Json* most = member(model, "max_input_chars_per_word");
    const std::int64_t longest = most == nullptr ? 100 : most->integer();
    require(longest >= 0, "max_input_chars_per_word", "expected at least 0, got ", longest);
    longest_ = std::size_t(longest);
    const std::string prefix = text_of(model, "continuing_subword_prefix", "##");
    std::vector<Prefixes::Entry> first, next;
    for (const auto& [piece, number] : vocabulary.numbers()) {
      first.emplace_back(piece, number);
      if (piece.starts_with(prefix)) next.emplace_back(piece.substr(prefix.size()), number);
    }
    first_ = Prefixes(std::move(first));
    next_ = Prefixes(std::move(next));
  }
  [[nodiscard]] std::string_view name() const override { return "word-pieces"; }

  void encode(std::string_view piece, Tokens& tokens, Scratch& /*scratch*/) const override {
    const std::size_t begin = tokens.size();
    bool known = !is_too_long(piece);
    for (std::size_t at = 0; known && at < piece.size();) {
      const Prefixes::Longest best = (at == 0 ? first_ : next_).longest(piece.substr(at));
      known = best.size > 0;
      tokens.push_back(best.number);
      at += best.size;
    }
    if (known) return;
    require(unknown_ >= 0, "unk_token", "expected a token of the vocabulary for words that have none, got ", unknown_name_);
    tokens.resize(begin);
    tokens.push_back(unknown_);
  }

 private:
  [[nodiscard]] bool is_too_long(std::string_view piece) const {
    std::size_t characters = 0;
    for (; !piece.empty() && characters <= longest_; ++characters) piece.remove_prefix(first_code_point(piece).bytes);
    return characters > longest_;
  }

  std::string unknown_name_;
  std::int32_t unknown_;
  std::size_t longest_ = 0;  // characters; a longer word is unknown
  Prefixes first_, next_;
};
}  // namespace

std::unique_ptr<PieceModel> word_piece_model(const Json& model, Vocabulary& vocabulary) {
  for (const auto& [piece, number] : model.at("vocab").members()) vocabulary.put(piece, token_number(number));
  return std::make_unique<WordPieceModel>(model, vocabulary);
}

}  // namespace isomer::tokenizers

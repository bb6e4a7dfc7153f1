// Unigram (Kudo 2018, as in T5 and XLM-R): of all ways to cut a piece into pieces of the vocabulary the one whose scores, which
// are logarithms of probabilities, have the greatest sum.
#include <algorithm>
#include <limits>

#include "isomer/io/unicode.h"
#include "isomer/models/tokenizers/byte_tokens.h"
#include "isomer/models/tokenizers/json_parts.h"
#include "isomer/models/tokenizers/piece_model.h"
#include "isomer/models/tokenizers/prefixes.h"

namespace isomer::tokenizers {

namespace {
// A character that is no piece costs this much more than the worst piece.
constexpr double kUnknown = 10;

class UnigramModel final : public PieceModel {
 public:
  UnigramModel(const Json& model, const Vocabulary& vocabulary, std::vector<double> scores)
      : vocabulary_(vocabulary), scores_(std::move(scores)), bytes_(flag(model, "byte_fallback", false), vocabulary) {
    if (const Json* unknown = member(model, "unk_id")) {
      const std::int64_t number = unknown->integer();
      require(number >= 0 && number < std::int64_t(scores_.size()), "unk_id", "expected a token of the vocabulary, got ", number);
      unknown_ = std::int32_t(number);
    }
    std::vector<Prefixes::Entry> entries;
    for (const auto& [piece, number] : vocabulary.numbers()) entries.emplace_back(piece, number);
    prefixes_ = Prefixes(std::move(entries));
    unknown_score_ = (scores_.empty() ? 0 : *std::ranges::min_element(scores_)) - kUnknown;
  }
  [[nodiscard]] std::string_view name() const override { return "unigrams"; }

  void encode(std::string_view piece, Tokens& tokens, Scratch& scratch) const override {
    require(piece.size() < std::size_t(std::numeric_limits<std::int32_t>::max()), "tokenizer",
            "expected shorter texts, got one of ", piece.size(), " bytes");
    find_best(piece, scratch.steps);
    // From the end to the beginning; unknown characters that follow each other are one.
    const std::size_t first = tokens.size();
    for (std::size_t end = piece.size(); end > 0;) {
      std::size_t begin = std::size_t(scratch.steps[end].begin);
      std::int32_t token = scratch.steps[end].token;
      if (token == unknown_) {
        while (begin > 0 && scratch.steps[begin].token == unknown_) begin = std::size_t(scratch.steps[begin].begin);
        const std::string_view text = piece.substr(begin, end - begin);
        token = vocabulary_.find(text);
        if (token < 0 && !bytes_.add_backwards(text, tokens)) token = unknown_;
      }
      if (token >= 0) tokens.push_back(token);
      end = begin;
    }
    std::reverse(tokens.begin() + std::ptrdiff_t(first), tokens.end());
  }

 private:
  void find_best(std::string_view piece, std::vector<Scratch::Step>& steps) const {
    steps.assign(piece.size() + 1, {});
    const auto offer = [&](std::size_t begin, std::size_t end, double score, std::int32_t token) {
      const double sum = score + steps[begin].score;
      if (steps[end].begin < 0 || sum > steps[end].score) steps[end] = {sum, std::int32_t(begin), token};
    };
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t size = first_code_point(piece.substr(at)).bytes;
      bool known = false;
      prefixes_.each(piece.substr(at), [&](std::size_t length, std::int32_t token) {
        offer(at, at + length, scores_[std::size_t(token)], token);
        known = known || length == size;
      });
      if (!known) {
        require(unknown_ >= 0, "unk_id", "expected a token for characters that have none, got none");
        offer(at, at + size, unknown_score_, unknown_);
      }
      at += size;
    }
  }

  const Vocabulary& vocabulary_;
  std::vector<double> scores_;
  ByteTokens bytes_;
  Prefixes prefixes_;
  double unknown_score_ = 0;
  std::int32_t unknown_ = -1;
};
}  // namespace

std::unique_ptr<PieceModel> unigram_model(const Json& model, Vocabulary& vocabulary) {
  std::vector<double> scores;
  const auto& pieces = model.at("vocab").items();
  require(std::int64_t(pieces.size()) < kMostTokens, "vocab", "expected fewer than ", kMostTokens, " pieces, got ",
          pieces.size());
  for (const Json& piece : pieces) {
    require(piece.items().size() == 2, "vocab", "expected a piece and its score, got ", piece.items().size(), " values");
    const double score = piece.items()[1].number();
    require(score == score, "vocab", "expected scores that are numbers, got none for ", piece.items()[0].text());
    vocabulary.put(piece.items()[0].text(), std::int32_t(scores.size()));
    scores.push_back(score);
  }
  return std::make_unique<UnigramModel>(model, vocabulary, std::move(scores));
}

}  // namespace isomer::tokenizers

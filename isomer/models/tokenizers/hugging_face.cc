#include "isomer/models/tokenizers/hugging_face.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "isomer/base/error.h"
#include "isomer/io/utf8.h"
#include "isomer/models/tokenizers/added_tokens.h"
#include "isomer/models/tokenizers/byte_tokens.h"
#include "isomer/models/tokenizers/cutters.h"
#include "isomer/models/tokenizers/decoders.h"
#include "isomer/models/tokenizers/input_template.h"
#include "isomer/models/tokenizers/json_parts.h"
#include "isomer/models/tokenizers/normalizers.h"
#include "isomer/models/tokenizers/piece_model.h"

namespace isomer {

namespace {
using namespace tokenizers;

// Longer pieces do not come again.
constexpr std::size_t kLongestWord = 64;

class Pipeline final : public Tokenizer {
 public:
  Pipeline(const Json& json, std::string_view text)
      : json_(text),
        normalizer_(normalizers_from(json.find("normalizer"))),
        cutter_(cutters_from(json.find("pre_tokenizer"))),
        decoder_(decoders_from(json.find("decoder"))),
        template_(input_template_from(json.find("post_processor"))) {
    const bool byte_level = !cutter_.empty() && std::holds_alternative<ByteLevelCut>(cutter_.back());
    read_model(json.at("model"), byte_level);
    // Some vocabularies have no tokens for the bytes that UTF-8 does not have.
    keeps_bytes_ = byte_level && normalizer_.empty() &&
                   std::ranges::all_of(byte_characters(), [&](const std::string& c) { return vocabulary_.find(c) >= 0; });
    std::vector<AddedToken> plain, normal;
    for (AddedToken& token : added_tokens_from(json)) {
      const std::string written = token.text;
      if (token.normalized) token.text = normalized(normalizer_, written);
      vocabulary_.put_added(written, token.text, token.number);
      (token.normalized ? normal : plain).push_back(std::move(token));
    }
    plain_ = AddedTokenFinder(std::move(plain));
    normal_ = AddedTokenFinder(std::move(normal));
    for (const auto* parts : {&template_.single, &template_.pair})
      for (const InputTemplate::Part& part : *parts)
        for (const std::int64_t token : part.tokens)
          require(token < vocabulary(), "post_processor", "expected tokens below ", vocabulary(), ", got ", token);
  }

  [[nodiscard]] std::string_view name() const override { return model_->name(); }
  [[nodiscard]] Index vocabulary() const override { return vocabulary_.size(); }
  [[nodiscard]] bool is_text() const override { return true; }

  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text) const override {
    std::string valid;
    if (!keeps_bytes_ && first_not_utf8(text) != std::string_view::npos) text = valid = valid_utf8(text);
    Encoding to;
    for (const AddedTokenFinder::Part& part : plain_.split(text)) {
      if (part.token >= 0)
        to.tokens.push_back(part.token);
      else
        add_text(part.text, part.text.data() == text.data(), to);
    }
    return std::move(to.tokens);
  }
  [[nodiscard]] TokenizerInput encode_input(std::string_view text) const override {
    return InputTemplate::filled(template_.single, encode(text), {});
  }
  [[nodiscard]] TokenizerInput encode_pair(std::string_view first, std::string_view second) const override {
    return InputTemplate::filled(template_.pair, encode(first), encode(second));
  }

  [[nodiscard]] std::string decode(std::span<const std::int64_t> tokens) const override { return decoded_text(tokens, true); }
  [[nodiscard]] std::string decode_next(std::span<const std::int64_t> tokens) const override {
    return decoded_text(tokens, false);
  }
  [[nodiscard]] std::optional<std::int64_t> token_of(std::string_view piece) const override {
    const std::int32_t number = vocabulary_.find_any(piece);
    return number < 0 ? std::optional<std::int64_t>() : number;
  }
  [[nodiscard]] std::string to_json() const override { return json_; }

 private:
  struct Encoding {
    std::vector<std::int64_t> tokens = {};
    // Words that were there before: where their tokens stand, and how many.
    std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>> seen = {};
    std::deque<std::string> texts = {};
    PieceModel::Scratch scratch = {};
  };

  void read_model(const Json& model, bool byte_level) {
    // Very old files do not say what they are.
    const std::string kind = model.find("type") == nullptr && model.find("merges") != nullptr ? "BPE" : kind_of(model);
    require(kind == "BPE" || kind == "WordPiece" || kind == "Unigram", "model", "expected BPE, WordPiece or Unigram, got ", kind);
    require(kind == "BPE" || !byte_level, "pre_tokenizer", "expected ByteLevel only with BPE, got it with ", kind);
    model_ = kind == "BPE"         ? byte_pair_model(model, vocabulary_, byte_level)
             : kind == "WordPiece" ? word_piece_model(model, vocabulary_)
                                   : unigram_model(model, vocabulary_);
  }

  void add_text(std::string_view text, bool first, Encoding& to) const {
    const std::string normal = normalized(normalizer_, std::string(text));
    for (const AddedTokenFinder::Part& part : normal_.split(normal)) {
      if (part.token >= 0) {
        to.tokens.push_back(part.token);
        continue;
      }
      Pieces pieces{
          .text = std::string(part.text), .all = {{0, part.text.size()}}, .first = first && part.text.data() == normal.data()};
      cut(cutter_, pieces);
      to.texts.push_back(std::move(pieces.text));
      for (const Pieces::Piece& piece : pieces.all) {
        std::string_view rest = std::string_view(to.texts.back()).substr(piece.begin, piece.end - piece.begin);
        for (std::size_t size = 0; !rest.empty(); rest.remove_prefix(size)) {
          size = model_->part_size(rest);
          add_piece(rest.substr(0, size), to);
        }
      }
    }
  }

  void add_piece(std::string_view piece, Encoding& to) const {
    if (piece.size() > kLongestWord) {
      model_->encode(piece, to.tokens, to.scratch);
      return;
    }
    const auto [known, is_new] = to.seen.try_emplace(piece, to.tokens.size(), 0);
    if (is_new) {
      model_->encode(piece, to.tokens, to.scratch);
      known->second.second = to.tokens.size() - known->second.first;
    } else {
      const auto [first, count] = known->second;
      for (std::size_t i = 0; i < count; ++i) to.tokens.push_back(to.tokens[first + i]);
    }
  }

  [[nodiscard]] std::string decoded_text(std::span<const std::int64_t> tokens, bool first) const {
    std::vector<std::string_view> pieces;
    for (const std::int64_t token : tokens)
      if (token >= 0 && token < vocabulary() && !vocabulary_.pieces()[std::size_t(token)].empty())
        pieces.push_back(vocabulary_.pieces()[std::size_t(token)]);
    return decoded(decoder_, pieces, first);
  }

  std::string json_;
  std::vector<NormalStep> normalizer_;
  std::vector<CutStep> cutter_;
  std::vector<DecodeStep> decoder_;
  InputTemplate template_;
  Vocabulary vocabulary_;
  std::unique_ptr<PieceModel> model_;
  AddedTokenFinder plain_, normal_;  // found before and after the normal form is made
  bool keeps_bytes_ = false;
};

/// Before memory is taken for them.
void check_size(const Json& json, Index most) {
  std::int64_t count = 0;
  const auto see = [&](std::int64_t number) { count = std::max(count, number + 1); };
  const Json& vocabulary = json.at("model").at("vocab");
  if (vocabulary.is_array())
    see(std::int64_t(vocabulary.items().size()) - 1);
  else
    for (const auto& [piece, number] : vocabulary.members()) see(token_number(number));
  for (const AddedToken& token : added_tokens_from(json)) see(token.number);
  require(count <= most, "vocabulary", "expected at most ", most, " tokens, which is what the model has, got ", count);
}
}  // namespace

std::unique_ptr<Tokenizer> hugging_face_tokenizer(const Json& json, std::string_view text, Index vocabulary) {
  check_size(json, vocabulary);
  return std::make_unique<Pipeline>(json, text);
}

}  // namespace isomer

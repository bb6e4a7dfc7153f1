// Byte-pair encoding (Sennrich et al. 2016): neighbouring parts of a piece become one, the merge that was learned first first. A
// piece begins as bytes (GPT-2), or as characters, some of which may be bytes, too (SentencePiece).
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <unordered_map>

#include "isomer/io/unicode.h"
#include "isomer/models/tokenizers/byte_tokens.h"
#include "isomer/models/tokenizers/json_parts.h"
#include "isomer/models/tokenizers/piece_model.h"

namespace isomer::tokenizers {

namespace {
struct Options {
  bool byte_level = false, ignore_merges = false, byte_fallback = false, fuse_unknown = false;
  std::int32_t unknown = -1;
};
struct Ranked {
  std::int32_t rank, result;
};
struct PairHash {
  [[nodiscard]] std::size_t operator()(std::uint64_t key) const { return std::size_t((key * 0x9e3779b97f4a7c15) >> 7); }
};
using Merges = std::unordered_map<std::uint64_t, Ranked, PairHash>;

std::uint64_t key_of(std::int64_t left, std::int64_t right) { return (std::uint64_t(left) << 32) | std::uint64_t(right); }

// What SentencePiece has in place of a space.
constexpr std::string_view kMark = "▁";

/// Where a space follows something else; npos: nowhere.
std::size_t word_end(std::string_view piece) {
  std::size_t at = 0;
  while (piece.substr(at).starts_with(kMark)) at += kMark.size();
  return piece.find(kMark, at);
}

class BytePairModel final : public PieceModel {
 public:
  BytePairModel(const Vocabulary& vocabulary, Merges merges, const Options& options)
      : vocabulary_(vocabulary),
        merges_(std::move(merges)),
        options_(options),
        bytes_(options.byte_fallback, vocabulary),
        byte_tokens_() {
    for (std::size_t byte = 0; byte < byte_tokens_.size(); ++byte) byte_tokens_[byte] = vocabulary.find(byte_characters()[byte]);
    // A space that has a token ends unknown characters, too.
    parted_ =
        !options.byte_level && !options.ignore_merges && vocabulary.find(kMark) >= 0 &&
        std::ranges::all_of(vocabulary.pieces(), [](const std::string& piece) { return word_end(piece) == std::string::npos; });
  }
  [[nodiscard]] std::string_view name() const override { return "byte-pairs"; }

  [[nodiscard]] std::size_t part_size(std::string_view piece) const override {
    return parted_ ? std::min(word_end(piece), piece.size()) : piece.size();
  }

  void encode(std::string_view piece, Tokens& tokens, Scratch& scratch) const override {
    require(piece.size() < std::size_t(std::numeric_limits<std::int32_t>::max()), "tokenizer",
            "expected shorter words, got one of ", piece.size(), " bytes");
    if (options_.ignore_merges) {
      const std::int32_t whole = vocabulary_.find(options_.byte_level ? written_bytes(piece) : std::string(piece));
      if (whole >= 0) {
        tokens.push_back(whole);
        return;
      }
    }
    scratch.symbols.clear();
    if (options_.byte_level)
      begin_with_bytes(piece, scratch);
    else
      begin_with_characters(piece, scratch);
    merge_all(scratch);
    for (const Scratch::Symbol& symbol : scratch.symbols)
      if (symbol.token >= 0) tokens.push_back(symbol.token);
  }

 private:
  static void add(std::int32_t token, Scratch& scratch) {
    const auto at = std::int32_t(scratch.symbols.size());
    scratch.symbols.push_back({token, at - 1, at + 1});
  }

  void begin_with_bytes(std::string_view piece, Scratch& scratch) const {
    bool unknown = false;
    for (const char byte : piece) add_character(byte_tokens_[static_cast<unsigned char>(byte)], unknown, scratch);
    if (unknown) add(options_.unknown, scratch);
  }

  void begin_with_characters(std::string_view piece, Scratch& scratch) const {
    // An unknown one waits until it is clear that no other follows.
    bool unknown = false;
    for (std::size_t size = 0; !piece.empty(); piece.remove_prefix(size)) {
      size = first_code_point(piece).bytes;
      const std::string_view character = piece.substr(0, size);
      const std::int32_t token = vocabulary_.find(character);
      if (token < 0 && options_.byte_fallback && bytes_.have(character)) {
        for (const char byte : character) add(bytes_[byte], scratch);
        continue;
      }
      add_character(token, unknown, scratch);
    }
    if (unknown) add(options_.unknown, scratch);
  }

  /// One that has no token is the unknown one; if there is none, it is left out.
  void add_character(std::int32_t token, bool& unknown, Scratch& scratch) const {
    if (token < 0 && options_.unknown < 0) return;
    if (unknown && (token >= 0 || !options_.fuse_unknown)) add(options_.unknown, scratch);
    unknown = token < 0;
    if (token >= 0) add(token, scratch);
  }

  [[nodiscard]] const Ranked* merge_at(std::int32_t at, const Scratch& scratch) const {
    const Scratch::Symbol& symbol = scratch.symbols[std::size_t(at)];
    const auto found = merges_.find(key_of(symbol.token, scratch.symbols[std::size_t(symbol.after)].token));
    return found == merges_.end() ? nullptr : &found->second;
  }
  void find_merge(std::int32_t at, Scratch& scratch) const {
    if (at < 0 || scratch.symbols[std::size_t(at)].after < 0) return;
    if (const Ranked* merge = merge_at(at, scratch)) {
      scratch.heap.push_back({merge->rank, at});
      std::ranges::push_heap(scratch.heap, std::greater<>());
    }
  }

  /// Merges the pair that was learned first, the leftmost of several, until there is none; n log n.
  void merge_all(Scratch& scratch) const {
    if (scratch.symbols.empty()) return;
    scratch.symbols.back().after = -1;
    scratch.heap.clear();
    for (std::int32_t i = 0; i < std::int32_t(scratch.symbols.size()); ++i) find_merge(i, scratch);
    while (!scratch.heap.empty()) {
      const Scratch::Candidate best = scratch.heap.front();
      std::ranges::pop_heap(scratch.heap, std::greater<>());
      scratch.heap.pop_back();
      Scratch::Symbol& symbol = scratch.symbols[std::size_t(best.at)];
      // It may have changed, or be gone, since.
      if (symbol.token < 0 || symbol.after < 0) continue;
      const Ranked* merge = merge_at(best.at, scratch);
      if (merge == nullptr || merge->rank != best.rank) continue;
      Scratch::Symbol& next = scratch.symbols[std::size_t(symbol.after)];
      symbol.token = merge->result;
      next.token = -1;
      symbol.after = next.after;
      if (symbol.after >= 0) scratch.symbols[std::size_t(symbol.after)].before = best.at;
      find_merge(symbol.before, scratch);
      find_merge(best.at, scratch);
    }
  }

  const Vocabulary& vocabulary_;
  Merges merges_;
  Options options_;
  ByteTokens bytes_;
  std::array<std::int32_t, 256> byte_tokens_;
  bool parted_ = false;  // has no piece a space behind something else?
};

/// What would change the tokens in a way that is not ours.
void expect_none(const Json& json, const char* key) {
  const Json* found = member(json, key);
  if (found == nullptr || *found == Json(false) || *found == Json("") || *found == Json(0.0)) return;
  fail(key, "expected none, got ", kind_of(*found));
}

std::int32_t merged_token(std::string_view token, const Vocabulary& vocabulary) {
  const std::int32_t number = vocabulary.find(token);
  require(number >= 0, "merges", "expected tokens of the vocabulary, got ", token);
  return number;
}

Merges merges_from(const Json& model, const Vocabulary& vocabulary) {
  Merges merges;
  const auto& all = model.at("merges").items();
  merges.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string_view left, right;
    if (all[i].is_string()) {
      const std::string_view both = all[i].text();
      const std::size_t space = both.find(' ');
      require(space != std::string_view::npos, "merges", "expected two tokens, got ", both);
      left = both.substr(0, space);
      right = both.substr(space + 1);
    } else {
      require(all[i].items().size() == 2, "merges", "expected two tokens, got ", all[i].items().size());
      left = all[i].items()[0].text();
      right = all[i].items()[1].text();
    }
    const std::int32_t first = merged_token(left, vocabulary), second = merged_token(right, vocabulary);
    // Of a pair that is there twice the last counts.
    merges.insert_or_assign(key_of(first, second),
                            Ranked{std::int32_t(i), merged_token(std::string(left).append(right), vocabulary)});
  }
  return merges;
}
}  // namespace

std::unique_ptr<PieceModel> byte_pair_model(const Json& model, Vocabulary& vocabulary, bool byte_level) {
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) expect_none(model, key);
  for (const auto& [piece, number] : model.at("vocab").members()) vocabulary.put(piece, token_number(number));
  Options options{.byte_level = byte_level,
                  .ignore_merges = flag(model, "ignore_merges", false),
                  .byte_fallback = !byte_level && flag(model, "byte_fallback", false),
                  .fuse_unknown = flag(model, "fuse_unk", false)};
  if (const std::string unknown = text_of(model, "unk_token", ""); !unknown.empty()) {
    options.unknown = vocabulary.find(unknown);
    require(options.unknown >= 0, "unk_token", "expected a token of the vocabulary, got ", unknown);
  }
  return std::make_unique<BytePairModel>(vocabulary, merges_from(model, vocabulary), options);
}

}  // namespace isomer::tokenizers

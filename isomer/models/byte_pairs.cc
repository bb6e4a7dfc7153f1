#include "isomer/models/byte_pairs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "isomer/base/error.h"
#include "isomer/io/utf8.h"

namespace isomer {

namespace {
constexpr int kBytes = 256;

/// How many bytes of the text are of a class, from its beginning.
std::size_t run_of(std::string_view text, CharacterClass kind) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8 c = first_character(text.substr(at));
    if (c.kind != kind) break;
    at += c.bytes;
  }
  return at;
}

/// White space, but for the last character of it if something follows, which belongs to that.
std::size_t spaces_of(std::string_view text) {
  std::size_t at = 0, last = 0;
  while (at < text.size()) {
    const Utf8 c = first_character(text.substr(at));
    if (c.kind != CharacterClass::space) return last > 0 ? last : at;
    last = at;
    at += c.bytes;
  }
  return at;
}

std::size_t word_of(std::string_view text) {
  for (const std::string_view end : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(end)) return end.size();
  const std::size_t space = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  const CharacterClass kind = first_character(text.substr(space)).kind;
  if (kind != CharacterClass::space) return space + run_of(text.substr(space), kind);
  return spaces_of(text);
}

std::uint64_t key_of(std::int64_t left, std::int64_t right) { return (std::uint64_t(left) << 32) | std::uint64_t(right); }

class BytePairs final : public Tokenizer {
 public:
  explicit BytePairs(internal::BytePairParts parts) : parts_(std::move(parts)) {
    byte_tokens_.fill(-1);
    for (std::size_t i = 0; i < parts_.tokens.size(); ++i)
      if (parts_.tokens[i].size() == 1 && !is_added(std::int64_t(i)))
        byte_tokens_[static_cast<unsigned char>(parts_.tokens[i][0])] = std::int32_t(i);
    for (std::size_t i = 0; i < parts_.merges.size(); ++i) {
      const internal::Merge& merge = parts_.merges[i];
      merges_.emplace(key_of(merge.left, merge.right), Ranked{std::int32_t(i), merge.result});
    }
  }
  [[nodiscard]] std::string_view name() const override { return "byte-pairs"; }
  [[nodiscard]] Index vocabulary() const override { return Index(parts_.tokens.size()); }
  [[nodiscard]] bool is_text() const override { return true; }

  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text) const override {
    Encoding to;
    // Where each added token stands next.
    std::vector<std::size_t> next(parts_.added.size());
    for (std::size_t i = 0; i < next.size(); ++i) next[i] = text.find(parts_.added[i].first);
    for (std::size_t at = 0;;) {
      std::size_t found = text.size(), which = 0;
      for (std::size_t i = 0; i < next.size(); ++i) {
        if (next[i] < at) next[i] = text.find(parts_.added[i].first, at);
        const bool longer =
            next[i] == found && found < text.size() && parts_.added[i].first.size() > parts_.added[which].first.size();
        if (next[i] < found || longer) found = next[i], which = i;
      }
      add_text(text.substr(at, found - at), to);
      if (found == text.size()) return to.tokens;
      to.tokens.push_back(parts_.added[which].second);
      at = found + parts_.added[which].first.size();
    }
  }

  [[nodiscard]] std::string decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    for (const std::int64_t token : tokens)
      if (token >= 0 && token < vocabulary()) text += parts_.tokens[std::size_t(token)];
    return text;
  }
  [[nodiscard]] std::string to_json() const override { return parts_.json; }

 private:
  struct Ranked {
    std::int32_t rank, result;
  };
  /// A piece of a word between its neighbours; gone when it has become part of the one before.
  struct Piece {
    std::int32_t token, before, after;
  };
  /// The merge of a piece with the next, as it was when it was found.
  struct Candidate {
    std::int32_t rank, at;
    [[nodiscard]] bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  struct Encoding {
    std::vector<std::int64_t> tokens = {};
    // Words that were there before: where their tokens stand, and how many.
    std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>> seen = {};
    std::vector<Piece> pieces = {};
    std::vector<Candidate> heap = {};
  };

  [[nodiscard]] bool is_added(std::int64_t token) const {
    return std::ranges::any_of(parts_.added, [&](const auto& added) { return added.second == token; });
  }

  void add_text(std::string_view text, Encoding& to) const {
    if (text.empty()) return;
    std::string with_space;
    if (parts_.prefix_space && text[0] != ' ') {
      with_space.append(1, ' ').append(text);
      to.seen.clear();
      text = with_space;
    }
    if (!parts_.pattern) {
      add_word(text, to);
    } else {
      WordCutter words(text);
      for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
        const auto [known, is_new] = to.seen.try_emplace(word, to.tokens.size(), 0);
        if (is_new) {
          add_word(word, to);
          known->second.second = to.tokens.size() - known->second.first;
        } else {
          const auto [first, count] = known->second;
          for (std::size_t i = 0; i < count; ++i) to.tokens.push_back(to.tokens[first + i]);
        }
      }
    }
    if (!with_space.empty()) to.seen.clear();
  }

  void find_merge(std::int32_t at, Encoding& to) const {
    if (at < 0 || to.pieces[std::size_t(at)].after < 0) return;
    if (const Ranked* merge = merge_at(at, to)) {
      to.heap.push_back({merge->rank, at});
      std::ranges::push_heap(to.heap, std::greater<>());
    }
  }
  [[nodiscard]] const Ranked* merge_at(std::int32_t at, const Encoding& to) const {
    const Piece& piece = to.pieces[std::size_t(at)];
    const auto found = merges_.find(key_of(piece.token, to.pieces[std::size_t(piece.after)].token));
    return found == merges_.end() ? nullptr : &found->second;
  }

  /// Merges the pair that was learned first, the leftmost of several, until there is none; n log n.
  void add_word(std::string_view word, Encoding& to) const {
    require(word.size() < std::size_t(std::numeric_limits<std::int32_t>::max()), "tokenizer",
            "expected shorter words, got one of ", word.size(), " bytes");
    const auto size = std::int32_t(word.size());
    to.pieces.clear();
    to.heap.clear();
    for (std::int32_t i = 0; i < size; ++i) {
      const auto byte = static_cast<unsigned char>(word[std::size_t(i)]);
      require(byte_tokens_[byte] >= 0, "tokenizer", "expected bytes that have a token, got ", int(byte));
      to.pieces.push_back({byte_tokens_[byte], i - 1, i + 1 < size ? i + 1 : -1});
    }
    for (std::int32_t i = 0; i < size; ++i) find_merge(i, to);
    while (!to.heap.empty()) {
      const Candidate best = to.heap.front();
      std::ranges::pop_heap(to.heap, std::greater<>());
      to.heap.pop_back();
      Piece& piece = to.pieces[std::size_t(best.at)];
      // It may have changed, or be gone, since.
      if (piece.token < 0 || piece.after < 0) continue;
      const Ranked* merge = merge_at(best.at, to);
      if (merge == nullptr || merge->rank != best.rank) continue;
      Piece& next = to.pieces[std::size_t(piece.after)];
      piece.token = merge->result;
      next.token = -1;
      piece.after = next.after;
      if (piece.after >= 0) to.pieces[std::size_t(piece.after)].before = best.at;
      find_merge(piece.before, to);
      find_merge(best.at, to);
    }
    for (const Piece& piece : to.pieces)
      if (piece.token >= 0) to.tokens.push_back(piece.token);
  }

  internal::BytePairParts parts_;
  std::array<std::int32_t, kBytes> byte_tokens_{};
  std::unordered_map<std::uint64_t, Ranked> merges_;
};
}  // namespace

std::string_view WordCutter::next() {
  if (rest_.empty()) return {};
  const std::string_view word = rest_.substr(0, word_of(rest_));
  rest_.remove_prefix(word.size());
  return word;
}

std::unique_ptr<Tokenizer> internal::make_byte_pairs(BytePairParts parts) {
  return std::make_unique<BytePairs>(std::move(parts));
}

}  // namespace isomer

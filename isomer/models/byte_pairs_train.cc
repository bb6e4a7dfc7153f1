// Learns merges: the most frequent pair of neighbours becomes one token, again and again. Counts of pairs are kept up to date
// word by word where a merge changes one.
#include <algorithm>
#include <queue>
#include <unordered_map>

#include "isomer/base/error.h"
#include "isomer/models/byte_pairs.h"

namespace isomer {

namespace {
using internal::Merge;

struct Word {
  std::vector<std::int32_t> tokens;
  std::int64_t count = 0;
};

struct Pair {
  std::int32_t left, right;
  [[nodiscard]] auto operator<=>(const Pair&) const = default;
};
struct PairHash {
  [[nodiscard]] std::size_t operator()(const Pair& pair) const {
    return std::size_t((std::uint64_t(std::uint32_t(pair.left)) << 32 | std::uint32_t(pair.right)) * 0x9e3779b97f4a7c15);
  }
};

/// How often a pair is there, and in which words it was seen; it may have left some of them since.
struct Places {
  std::int64_t count = 0;
  std::vector<std::int32_t> words = {};
};

/// A pair with the count that it had.
struct Candidate {
  std::int64_t count;
  Pair pair;
  [[nodiscard]] bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Trainer {
 public:
  explicit Trainer(std::vector<Word> words) : words_(std::move(words)) {
    for (std::size_t w = 0; w < words_.size(); ++w)
      for (std::size_t i = 0; i + 1 < words_[w].tokens.size(); ++i)
        change({words_[w].tokens[i], words_[w].tokens[i + 1]}, std::int32_t(w), +1);
    for (const auto& [pair, places] : pairs_) queue_.push({places.count, pair});
  }

  /// The most frequent pair, of several the first; nothing if none is there so often.
  [[nodiscard]] bool next(std::int64_t least, Pair& best) {
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(top.pair);
      const std::int64_t now = found == pairs_.end() ? 0 : found->second.count;
      if (now != top.count) {
        if (now > 0) queue_.push({now, top.pair});
        continue;
      }
      if (now < least) return false;
      best = top.pair;
      return true;
    }
    return false;
  }

  void merge(const Pair& pair, std::int32_t result) {
    std::vector<std::int32_t> words = std::move(pairs_.at(pair).words);
    std::ranges::sort(words);
    words.erase(std::unique(words.begin(), words.end()), words.end());
    changed_.clear();
    for (const std::int32_t w : words) merge_word(w, pair, result);
    pairs_.erase(pair);
    std::ranges::sort(changed_);
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const Pair& grown : changed_)
      if (const auto found = pairs_.find(grown); found != pairs_.end() && found->second.count > 0)
        queue_.push({found->second.count, grown});
  }

 private:
  void change(const Pair& pair, std::int32_t word, int by) {
    Places& places = pairs_[pair];
    places.count += by * words_[std::size_t(word)].count;
    if (by < 0) return;
    if (places.words.empty() || places.words.back() != word) places.words.push_back(word);
    changed_.push_back(pair);
  }

  void merge_word(std::int32_t w, const Pair& pair, std::int32_t result) {
    std::vector<std::int32_t>& tokens = words_[std::size_t(w)].tokens;
    std::size_t to = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i + 1 == tokens.size() || tokens[i] != pair.left || tokens[i + 1] != pair.right) {
        tokens[to++] = tokens[i];
        continue;
      }
      // What stands before is merged already, what stands behind is not.
      if (to > 0) {
        change({tokens[to - 1], pair.left}, w, -1);
        change({tokens[to - 1], result}, w, +1);
      }
      if (i + 2 < tokens.size()) {
        change({pair.right, tokens[i + 2]}, w, -1);
        change({result, tokens[i + 2]}, w, +1);
      }
      tokens[to++] = result;
      ++i;
    }
    tokens.resize(to);
  }

  std::vector<Word> words_;
  std::unordered_map<Pair, Places, PairHash> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<Pair> changed_;
};

/// Every word with its tokens, in the order of its first place.
std::vector<Word> words_of(std::span<const std::string> documents, std::span<const std::int32_t> byte_tokens) {
  std::unordered_map<std::string_view, std::size_t> known;
  std::vector<Word> words;
  for (const std::string& document : documents) {
    WordCutter cutter(document);
    for (std::string_view word = cutter.next(); !word.empty(); word = cutter.next()) {
      const auto [place, is_new] = known.emplace(word, words.size());
      if (is_new) {
        words.emplace_back();
        for (const char byte : word) words.back().tokens.push_back(byte_tokens[static_cast<unsigned char>(byte)]);
      }
      ++words[place->second].count;
    }
  }
  return words;
}
}  // namespace

std::unique_ptr<Tokenizer> train_byte_pairs(std::span<const std::string> documents, const BytePairOptions& options) {
  internal::BytePairParts parts;
  for (const std::string& special : options.special) {
    require(!special.empty(), "tokenizer", "expected special tokens with a text, got an empty one");
    require(std::ranges::find(parts.tokens, special) == parts.tokens.end(), "tokenizer",
            "expected different special tokens, got ", special, " twice");
    parts.tokens.push_back(special);
    ++parts.special;
  }
  std::vector<std::int32_t> byte_tokens(256);
  for (const unsigned char byte : internal::bytes_in_order()) {
    byte_tokens[byte] = std::int32_t(parts.tokens.size());
    parts.tokens.emplace_back(1, char(byte));
  }
  const Index first = Index(parts.tokens.size());
  require(options.vocabulary >= first, "tokenizer", "expected a vocabulary of at least ", first,
          ", the bytes and the special tokens, got ", options.vocabulary);
  Trainer trainer(words_of(documents, byte_tokens));
  std::unordered_map<std::string, std::int32_t> numbers;
  for (std::size_t i = 0; i < parts.tokens.size(); ++i) numbers.emplace(parts.tokens[i], std::int32_t(i));
  for (Pair pair{}; Index(parts.tokens.size()) < options.vocabulary && trainer.next(options.least, pair);) {
    std::string text = parts.tokens[std::size_t(pair.left)] + parts.tokens[std::size_t(pair.right)];
    // Another pair may have made the same text.
    const auto [known, is_new] = numbers.emplace(text, std::int32_t(parts.tokens.size()));
    if (is_new) parts.tokens.push_back(std::move(text));
    parts.merges.push_back({pair.left, pair.right, known->second});
    trainer.merge(pair, known->second);
  }
  return tokenizer_from(internal::byte_pairs_json(parts), "tokenizer", options.vocabulary);
}

}  // namespace isomer

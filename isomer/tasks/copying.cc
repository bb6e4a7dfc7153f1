// Copying strings of letters, and looking up what follows an n-gram in one.
#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/tasks/draw.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 6> kOptions{{
    {"variant", "copy", "copy: $s|s. — prefix: $g|s|c. — suffix: $s|gc. — where c follows the n-gram g in s"},
    {"ngram", "3", "letters of g"},
    {"shortest", "2", "letters of the shortest training string"},
    {"longest", "64", "letters of the longest training string"},
    {"context", "420", "tokens of a training example: strings one after the other; one that is cut off has no labels"},
    {"test_length", "64", "letters of a test string, one an example"},
}};

constexpr std::int64_t kLetters = 26, kBegin = 26, kBar = 27, kEnd = 28, kPad = 29, kVocabulary = 30;
enum class Variant { copy, prefix, suffix };

class Copying final : public Task {
 public:
  explicit Copying(const TaskOptions& options)
      : Task(options),
        variant_(Variant(options.choice("variant", {"copy", "prefix", "suffix"}))),
        ngram_(options.size("ngram", 1, 64) * (variant_ == Variant::copy ? 0 : 1)),
        shortest_(options.size("shortest", 1, 1 << 16)),
        longest_(options.size("longest", 1, 1 << 16)),
        test_length_(options.size("test_length", 1, 1 << 16)),
        context_(options.size("context", 1, 1 << 20)) {
    require(shortest_ <= longest_, "copying", "expected shortest ≤ longest, got ", shortest_, " and ", longest_);
    require(std::min(shortest_, test_length_) > ngram_, "copying", "expected strings longer than the n-gram of ", ngram_,
            ", got ", std::min(shortest_, test_length_), " letters");
    require(context_ >= tokens_of(longest_), "copying", "expected a context of at least one string of ", tokens_of(longest_),
            " tokens, got ", context_);
    shape_ = {.metric = Metric::exact,
              .length = std::max(context_, tokens_of(test_length_) - 1),
              .vocabulary = kVocabulary,
              .classes = kVocabulary,
              .padding = kPad};
  }

  [[nodiscard]] std::string spell(std::int64_t token) const override {
    return token < kLetters ? std::string(1, char('a' + token)) : std::string(1, "$|.*"[token - kLetters]);
  }

 private:
  /// The most tokens that a string of n letters takes, the end included.
  [[nodiscard]] Index tokens_of(Index n) const { return 2 * n + 3 + (variant_ == Variant::prefix ? 1 : 0); }

  [[nodiscard]] Index length_of(Split split, std::uint64_t /*index*/) const override {
    // The end is a label only.
    return split == Split::train ? context_ : tokens_of(test_length_) - 1;
  }

  void draw(Example& e) const override {
    const std::size_t T = e.tokens.size();
    // One more token than the inputs: the last label's.
    std::size_t at = 0;
    while (at <= T) {
      const Index n = e.split == Split::test ? test_length_ : draw::between(e.rng, shortest_, longest_);
      e.scratch.integers.resize(std::size_t(tokens_of(std::max(longest_, test_length_))));
      const auto [size, asked] = write_string(e.rng, n, e.scratch.integers);
      const bool whole = at + size <= T + 1;
      for (std::size_t i = 0; i < size && at + i <= T; ++i) {
        if (at + i < T) e.tokens[at + i] = e.scratch.integers[i];
        if (whole && i >= asked) e.labels[at + i - 1] = e.scratch.integers[i];
      }
      at += size;
      if (e.split == Split::train) continue;
      // What follows an n-gram may be shorter than a string.
      e.length = Index(size) - 1;
      if (size <= T) e.tokens[size - 1] = kPad;
      return;
    }
  }

  struct Written {
    std::size_t size, asked;  // tokens, and the first that is to be predicted
  };

  [[nodiscard]] Written write_string(Rng& rng, Index n, std::span<std::int64_t> out) const {
    std::size_t size = 0;
    const auto put = [&](std::int64_t token) { out[size++] = token; };
    const auto again = [&](std::size_t from, std::size_t count) {
      for (std::size_t i = from; i < from + count; ++i) put(out[i]);
    };
    put(kBegin);
    const std::size_t g = std::size_t(ngram_), N = std::size_t(n);
    const std::size_t s = variant_ == Variant::prefix ? g + 2 : 1;  // where the string begins
    size = s;
    const std::size_t gram = draw_letters(rng, out.subspan(s, N), g);  // where the n-gram begins in it
    if (variant_ == Variant::prefix) {
      std::copy_n(out.begin() + std::ptrdiff_t(s + gram), g, out.begin() + 1);
      out[g + 1] = kBar;
    }
    size += N;
    put(kBar);
    if (variant_ == Variant::suffix) again(s + gram, g);
    const std::size_t asked = size;
    again(s + gram + g, N - gram - g);
    put(kEnd);
    return {size, asked};
  }

  /// Random letters, and the begin of an n-gram that is there once and is not the end. Without n-grams: 0.
  [[nodiscard]] static std::size_t draw_letters(Rng& rng, std::span<std::int64_t> letters, std::size_t g) {
    for (;;) {
      for (std::int64_t& letter : letters) letter = std::int64_t(rng.below(kLetters));
      if (g == 0) return 0;
      const std::size_t begin = rng.below(letters.size() - g);
      const auto gram = letters.subspan(begin, g);
      const auto first = std::search(letters.begin(), letters.end(), gram.begin(), gram.end());
      if (std::search(first + 1, letters.end(), gram.begin(), gram.end()) == letters.end()) return begin;
    }
  }

  Variant variant_;
  Index ngram_, shortest_, longest_, test_length_, context_;
};
}  // namespace

const TaskType task::copying{
    .name = "copying",
    .source = "Jelassi et al. 2024 (Repeat After Me); Movahedi et al. 2025 (Selective RoPE)",
    .summary = "say a string of letters again, or what follows an n-gram in it",
    .own_options = kOptions,
    .test_examples = "1000",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<Copying>(options); },
};

}  // namespace isomer

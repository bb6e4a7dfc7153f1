// A needle in a haystack: one fact at a given depth of a long text of random tokens, asked for at its end.
#include <algorithm>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/tasks/draw.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 6> kOptions{{
    {"length", "512", "tokens"},
    {"test_length", "512", "tokens in the test"},
    {"vocabulary", "256", "the last two mark a needle and the question; the others are filler, keys and values"},
    {"values", "1", "tokens of the answer"},
    {"needles", "1", "facts; one of them is asked for"},
    {"depth", "random", "where the asked one stands: 0 at the start, 1 at the end, or random"},
}};

class Needle final : public Task {
 public:
  explicit Needle(const TaskOptions& options)
      : Task(options),
        lengths_{options.size("length", 1, 1 << 24), options.size("test_length", 1, 1 << 24)},
        values_(options.size("values", 1, 64)),
        needles_(options.size("needles", 1, 4096)),
        depth_(options.text("depth") == "random" ? -1 : options.number("depth", 0, 1)) {
    const Index vocabulary = options.size("vocabulary", 4, 1 << 20);
    const Index least = needles_ * needle() + question();
    require(std::min(lengths_[0], lengths_[1]) >= least, "needle", "expected a length of at least ", least, ", got ",
            std::min(lengths_[0], lengths_[1]));
    require(needles_ <= vocabulary - 2, "needle", "expected at most as many needles as keys, ", vocabulary - 2, ", got ",
            needles_);
    shape_ = {
        .metric = Metric::exact, .length = std::max(lengths_[0], lengths_[1]), .vocabulary = vocabulary, .classes = vocabulary};
  }

  [[nodiscard]] std::string spell(std::int64_t token) const override {
    return token == mark() ? "[K]" : token == mark() + 1 ? "[Q]" : std::to_string(token);
  }

 private:
  [[nodiscard]] std::int64_t mark() const { return shape_.vocabulary - 2; }
  /// Tokens of [K] key values, and of [Q] key with all values but the last, which is a label only.
  [[nodiscard]] Index needle() const { return 2 + values_; }
  [[nodiscard]] Index question() const { return 1 + values_; }
  [[nodiscard]] Index length_of(Split split, std::uint64_t /*index*/) const override { return lengths_[std::size_t(split)]; }

  void draw(Example& e) const override {
    const std::uint64_t symbols = std::uint64_t(mark());
    for (std::int64_t& token : e.tokens) token = std::int64_t(e.rng.below(symbols));
    const std::size_t n = std::size_t(needles_);
    e.scratch.integers.resize(2 * n);
    const auto keys = std::span(e.scratch.integers).subspan(0, n), places = std::span(e.scratch.integers).subspan(n, n);
    draw::distinct(e.rng, symbols, keys);
    // A needle stands behind so many tokens of filler.
    const Index filler = Index(e.tokens.size()) - question() - needles_ * needle();
    for (std::int64_t& place : places) place = draw::between(e.rng, 0, filler);
    if (depth_ >= 0) places[0] = std::llround(depth_ * double(filler));
    const std::int64_t asked = places[0];
    std::sort(places.begin(), places.end());
    const std::size_t which = std::size_t(std::find(places.begin(), places.end(), asked) - places.begin());
    const std::size_t at = std::size_t(asked) + which * std::size_t(needle());
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t t = std::size_t(places[i]) + i * std::size_t(needle());
      e.tokens[t] = mark();
      e.tokens[t + 1] = keys[i];
    }
    const std::size_t ask = e.tokens.size() - std::size_t(question());
    e.tokens[ask] = mark() + 1;
    for (std::size_t i = 1; i <= std::size_t(values_); ++i) {
      e.tokens[ask + i] = e.tokens[at + i];
      e.labels[ask + i] = e.tokens[at + i + 1];
    }
  }

  std::array<Index, 2> lengths_;  // of train, of test
  Index values_, needles_;
  double depth_;  // −1: random
};
}  // namespace

const TaskType task::needle{
    .name = "needle",
    .source = "Mohtashami & Jaggi 2023 (passkey); Hsieh et al. 2024 (RULER)",
    .summary = "a fact at some depth of a long sequence, asked for at its end",
    .own_options = kOptions,
    .test_examples = "500",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<Needle>(options); },
};

}  // namespace isomer

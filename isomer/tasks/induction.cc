// Induction heads: what followed a special token the first time follows it again.
#include <algorithm>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/tasks/draw.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 5> kOptions{{
    {"vocabulary", "16", "random tokens, and the last one, which is special"},
    {"length", "256", "tokens"},
    {"test_length", "256", "tokens in the test"},
    {"times", "1",
     "how often the special token comes before the end, the same token behind it; asked for from the second time on"},
    {"depth", "random", "where it comes first: 0 at the start, 1 at the end, or random"},
}};

class Induction final : public Task {
 public:
  explicit Induction(const TaskOptions& options)
      : Task(options),
        lengths_{options.size("length", 3, 1 << 24), options.size("test_length", 3, 1 << 24)},
        times_(options.size("times", 1, 1 << 20)),
        depth_(options.text("depth") == "random" ? -1 : options.number("depth", 0, 1)) {
    require(std::min(lengths_[0], lengths_[1]) > 2 * times_, "induction", "expected a length of at least ", 2 * times_ + 1,
            ", got ", std::min(lengths_[0], lengths_[1]));
    const Index vocabulary = options.size("vocabulary", 2, 1 << 20);
    shape_ = {.length = std::max(lengths_[0], lengths_[1]), .vocabulary = vocabulary, .classes = vocabulary};
  }

 private:
  [[nodiscard]] Index length_of(Split split, std::uint64_t /*index*/) const override { return lengths_[std::size_t(split)]; }

  void draw(Example& e) const override {
    const std::int64_t special = shape_.vocabulary - 1;
    for (std::int64_t& token : e.tokens) token = std::int64_t(e.rng.below(std::uint64_t(special)));
    // It comes behind so many tokens of others, each time with the answer.
    const Index filler = Index(e.tokens.size()) - 1 - 2 * times_;
    const Index first = depth_ < 0 ? 0 : Index(std::llround(depth_ * double(filler)));
    e.scratch.integers.resize(std::size_t(times_));
    for (std::int64_t& place : e.scratch.integers) place = draw::between(e.rng, first, filler);
    if (depth_ >= 0) e.scratch.integers[0] = first;
    std::sort(e.scratch.integers.begin(), e.scratch.integers.end());
    const std::int64_t answer = e.tokens[std::size_t(e.scratch.integers[0]) + 1];
    for (std::size_t i = 0; i < e.scratch.integers.size(); ++i) {
      const std::size_t at = std::size_t(e.scratch.integers[i]) + 2 * i;
      e.tokens[at] = special;
      e.tokens[at + 1] = answer;
      if (i > 0) e.labels[at] = answer;
    }
    e.tokens.back() = special;
    e.labels.back() = answer;
  }

  std::array<Index, 2> lengths_;  // of train, of test
  Index times_;
  double depth_;  // −1: random
};
}  // namespace

const TaskType task::induction{
    .name = "induction",
    .source = "Olsson et al. 2022; Gu & Dao 2023 (Mamba)",
    .summary = "the token that followed a special one when it came first",
    .own_options = kOptions,
    .test_examples = "1000",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<Induction>(options); },
};

}  // namespace isomer

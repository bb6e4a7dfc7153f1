// Induction heads: what followed a special token the first time follows it again.
#include "isomer/tasks/draw.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 3> kOptions{{
    {"vocabulary", "16", "random tokens, and the last one, which is special"},
    {"length", "256", "tokens"},
    {"test_length", "256", "tokens in the test"},
}};

class Induction final : public Task {
 public:
  explicit Induction(const TaskOptions& options)
      : Task(options), lengths_{options.size("length", 3, 1 << 24), options.size("test_length", 3, 1 << 24)} {
    const Index vocabulary = options.size("vocabulary", 2, 1 << 20);
    shape_ = {.length = std::max(lengths_[0], lengths_[1]), .vocabulary = vocabulary, .classes = vocabulary};
  }

 private:
  [[nodiscard]] Index length_of(Split split, std::uint64_t /*index*/) const override { return lengths_[std::size_t(split)]; }

  void draw(Example& e) const override {
    const std::int64_t special = shape_.vocabulary - 1;
    for (std::int64_t& token : e.tokens) token = std::int64_t(e.rng.below(std::uint64_t(special)));
    const std::size_t at = e.rng.below(e.tokens.size() - 2);
    e.tokens[at] = special;
    e.tokens.back() = special;
    e.labels.back() = e.tokens[at + 1];
  }

  std::array<Index, 2> lengths_;  // of train, of test
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

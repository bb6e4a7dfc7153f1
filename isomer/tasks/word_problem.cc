// State tracking: the product of the group elements so far.
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/tasks/groups.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 5> kOptions{{
    {"group", "S3", "Z2 … Z1024, S2 … S6, A3 … A6, or a product such as A4xZ5; S2 is parity"},
    {"length", "128", "elements of a training sequence"},
    {"test_length", "512", "elements of a test sequence"},
    {"moves", "0", "only elements that move at most so many points (2: identity and swaps); 0: all"},
    {"spacing", "1", "tokens an element: fillers follow it, and the answer comes that much later"},
}};

class WordProblem final : public Task {
 public:
  explicit WordProblem(const TaskOptions& options)
      : Task(options),
        group_(group_named(options.text("group"))),
        length_(options.size("length", 1, 1 << 20)),
        test_length_(options.size("test_length", 1, 1 << 20)),
        spacing_(options.size("spacing", 1, 1024)) {
    const Index moves = options.size("moves", 0, 1 << 10);
    for (Index g = 0; g < group_.order; ++g)
      if (moves == 0 || group_.moved[std::size_t(g)] <= moves) drawn_.push_back(g);
    require(drawn_.size() > 1, "word-problem", "expected elements that move at most ", moves, " points, got the identity alone");
    // From so many different sequences on, each split surely has its share.
    constexpr double kEnough = 1024;
    const auto least = Index(std::ceil(std::log(kEnough) / std::log(double(drawn_.size()))));
    require(test_length_ >= least, "word-problem", "expected a test_length of at least ", least, " for ", drawn_.size(),
            " elements, so that some sequences are kept for the test, got ", test_length_);
    apart_from_ = tokens_of(least);
    const Index vocabulary = group_.order + (spacing_ > 1 ? 2 : 1);
    shape_ = {.metric = Metric::exact,
              .length = tokens_of(std::max(length_, test_length_)),
              .vocabulary = vocabulary,
              .classes = vocabulary,
              .padding = group_.order};
  }

  [[nodiscard]] std::string spell(std::int64_t token) const override {
    return token < group_.order ? group_.names[std::size_t(token)] : token == group_.order ? "begin" : ".";
  }

 private:
  [[nodiscard]] Index tokens_of(Index elements) const { return 1 + elements * spacing_; }
  [[nodiscard]] Index length_of(Split split, std::uint64_t /*index*/) const override {
    return tokens_of(split == Split::train ? length_ : test_length_);
  }

  void draw(Example& e) const override {
    e.tokens[0] = group_.order;
    Index product = 0;
    for (std::size_t t = 1; t < e.tokens.size(); ++t) {
      const std::size_t since = (t - 1) % std::size_t(spacing_);
      const Index element = since == 0 ? drawn_[e.rng.below(drawn_.size())] : group_.order + 1;
      e.tokens[t] = element;
      if (since == 0) product = group_.product(product, element);
      if (since + 1 == std::size_t(spacing_)) e.labels[t] = product;
    }
  }

  Group group_;
  Index length_, test_length_, spacing_;
  std::vector<Index> drawn_;  // the elements that occur
};
}  // namespace

const TaskType task::word_problem{
    .name = "word-problem",
    .source = "Merrill et al. 2024; Grazzi et al. 2024; Siems et al. 2025 (DeltaProduct)",
    .summary = "the product of the group elements so far, at every token",
    .own_options = kOptions,
    .train_examples = "100000",
    .test_examples = "1000",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<WordProblem>(options); },
};

}  // namespace isomer

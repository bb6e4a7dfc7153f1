// MAD: selective copying.
#include "isomer/base/error.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 3> kOptions{{
    {"vocabulary", "16", "the last token asks, the one before is blank, the others are copied"},
    {"length", "256", "tokens"},
    {"tokens", "16", "tokens to copy"},
}};

class MadCopy final : public Task {
 public:
  explicit MadCopy(const TaskOptions& options) : Task(options), copied_(options.size("tokens", 1, 1 << 19)) {
    const Index vocabulary = options.size("vocabulary", 3, 1 << 20), length = options.size("length", 4, 1 << 20);
    require(length > 2 * copied_ + 1, "mad-copy", "expected a length above ", 2 * copied_ + 1, ", got ", length);
    shape_ = {.length = length, .vocabulary = vocabulary, .classes = vocabulary, .padding = vocabulary - 2};
  }

 private:
  void draw(Example& e) const override {
    const std::size_t M = std::size_t(copied_), asked = e.tokens.size() - M, blanks = asked - M - 1;
    // Every blank picks a token to stand before.
    std::vector<std::int64_t>& before = e.scratch.integers;
    before.assign(M, 0);
    for (std::size_t i = 0; i < blanks; ++i) ++before[e.rng.below(M)];
    std::size_t t = 0;
    for (std::size_t i = 0; i < M; ++i) {
      t += std::size_t(before[i]);
      e.tokens[t] = std::int64_t(e.rng.below(std::uint64_t(shape_.vocabulary - 2)));
      e.labels[asked + i] = e.tokens[t++];
    }
    e.tokens[t] = shape_.vocabulary - 1;
  }

  Index copied_;
};
}  // namespace

const TaskType task::mad_copy{
    .name = "mad-copy",
    .source = "Poli et al. 2024 (MAD)",
    .summary = "selective copying: say the tokens among blanks again, in order",
    .own_options = kOptions,
    .train_examples = "12800",
    .test_examples = "1280",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<MadCopy>(options); },
};

}  // namespace isomer

// Parity of bits, trained on short sequences and tested on long ones.
#include "isomer/base/error.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 5> kOptions{{
    {"shortest", "3", "bits of the shortest training sequence"},
    {"longest", "40", "bits of the longest training sequence"},
    {"test_shortest", "40", "bits of the shortest test sequence"},
    {"test_longest", "256", "bits of the longest test sequence"},
    {"labels", "last", "last: only the last bit is labelled, with the parity of all; every: each with the parity so far"},
}};

// Token 0 is padding; bit b and the answer "parity b" are token 1 + b.
constexpr std::int64_t kVocabulary = 3;

class Parity final : public Task {
 public:
  explicit Parity(const TaskOptions& options)
      : Task(options),
        least_{options.size("shortest", 1, 1 << 20), options.size("test_shortest", 1, 1 << 20)},
        most_{options.size("longest", 1, 1 << 20), options.size("test_longest", 1, 1 << 20)},
        every_(options.choice("labels", {"last", "every"}) == 1) {
    require(least_[0] <= most_[0], "parity", "expected shortest ≤ longest, got ", least_[0], " and ", most_[0]);
    require(least_[1] <= most_[1], "parity", "expected test_shortest ≤ test_longest, got ", least_[1], " and ", most_[1]);
    // 2^10 sequences: some of each length are surely dealt to the test.
    apart_from_ = 10;
    require(least_[1] >= apart_from_, "parity", "expected a test_shortest of at least ", apart_from_,
            ", so that some sequences are kept for the test, got ", least_[1]);
    shape_ = {.metric = Metric::exact, .length = std::max(most_[0], most_[1]), .vocabulary = kVocabulary, .classes = kVocabulary};
  }

  [[nodiscard]] std::string spell(std::int64_t token) const override { return token == 0 ? "_" : std::to_string(token - 1); }

 private:
  [[nodiscard]] Index length_of(Split split, std::uint64_t index) const override {
    return random_length(split, index, least_[std::size_t(split)], most_[std::size_t(split)]);
  }

  void draw(Example& e) const override {
    std::int64_t parity = 0;
    for (std::size_t t = 0; t < e.tokens.size(); ++t) {
      const std::int64_t bit = e.rng.bits() & 1;
      parity ^= bit;
      e.tokens[t] = 1 + bit;
      if (every_ || t + 1 == e.tokens.size()) e.labels[t] = 1 + parity;
    }
  }

  std::array<Index, 2> least_, most_;  // of train, of test
  bool every_;
};
}  // namespace

const TaskType task::parity{
    .name = "parity",
    .source = "Beck et al. 2024 (xLSTM)",
    .summary = "is the number of ones odd? Trained on short sequences, tested on long ones",
    .own_options = kOptions,
    .test_examples = "1000",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<Parity>(options); },
};

}  // namespace isomer

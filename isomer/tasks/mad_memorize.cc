// MAD: memorisation of a mapping that never changes.
#include <numeric>

#include "isomer/base/error.h"
#include "isomer/tasks/draw.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 2> kOptions{{
    {"vocabulary", "256", "keys are its lower half, values its upper half, the last token asks"},
    {"length", "32", "tokens, even"},
}};

class MadMemorize final : public Task {
 public:
  explicit MadMemorize(const TaskOptions& options) : Task(options) {
    const Index vocabulary = options.size("vocabulary", 3, 1 << 20), length = options.size("length", 2, 1 << 20);
    require(length % 2 == 0, "mad-memorize", "expected an even length, got ", length);
    shape_ = {.length = length, .vocabulary = vocabulary, .classes = vocabulary};
    const Index keys = (vocabulary - 1) / 2;
    value_of_.resize(std::size_t(vocabulary - 1 - keys));
    std::iota(value_of_.begin(), value_of_.end(), keys);
    Rng rng = shared_stream(0);
    draw::shuffle(rng, value_of_);
    value_of_.resize(std::size_t(keys));
  }

 private:
  void draw(Example& e) const override {
    for (std::size_t t = 0; t < e.tokens.size(); t += 2) {
      e.tokens[t] = std::int64_t(e.rng.below(value_of_.size()));
      e.tokens[t + 1] = shape_.vocabulary - 1;
      e.labels[t + 1] = value_of_[std::size_t(e.tokens[t])];
    }
  }

  std::vector<std::int64_t> value_of_;  // by key; different keys have different values
};
}  // namespace

const TaskType task::mad_memorize{
    .name = "mad-memorize",
    .source = "Poli et al. 2024 (MAD)",
    .summary = "memorisation: the value of a key in a mapping that is the same in all sequences",
    .own_options = kOptions,
    .train_examples = "256",
    .test_examples = "1280",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<MadMemorize>(options); },
};

}  // namespace isomer

// MAD: in-context recall, and the same among noise.
#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr OptionSpec kLength{"length", "128", "tokens, even; the last one is a label only"};
constexpr std::array<OptionSpec, 2> kOptions{{
    {"vocabulary", "16", "keys are its lower half, values its upper half"},
    kLength,
}};
constexpr std::array<OptionSpec, 4> kNoisyOptions{{
    {"vocabulary", "32", "keys, values and noise symbols"},
    kLength,
    {"noise_symbols", "16", "symbols that are noise, the last ones of the vocabulary"},
    {"noise", "0.2", "share of pairs that are two noise symbols instead"},
}};

class MadRecall final : public Task {
 public:
  MadRecall(const TaskOptions& options, bool noisy)
      : Task(options),
        symbols_(options.size("vocabulary", 4, 1 << 20) - (noisy ? options.size("noise_symbols", 1, 1 << 20) : 0)),
        noise_(noisy ? options.number("noise", 0, 0.99) : 0) {
    const Index length = options.size("length", 4, 1 << 20), vocabulary = options.size("vocabulary", 4, 1 << 20);
    require(length % 2 == 0, options.type().name.data(), "expected an even length, got ", length);
    require(symbols_ >= 4, options.type().name.data(), "expected a vocabulary with at least 4 symbols beside the noise, got ",
            symbols_);
    shape_ = {.length = length - 1, .vocabulary = vocabulary, .classes = vocabulary};
  }

 private:
  void draw(Example& e) const override {
    const std::size_t keys = std::size_t(symbols_ / 2), pairs = e.tokens.size() / 2 + 1;
    std::vector<std::int64_t>& value_of = e.scratch.integers;
    value_of.assign(keys, kIgnored);
    std::int64_t key = 0;
    // So that the last pair can ask for something.
    const std::size_t surely = e.rng.below(pairs - 1);
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const bool last = pair + 1 == pairs;
      if (!last && pair != surely && noise_ > 0 && e.rng.uniform() < noise_) {
        // One after the other: the order in which arguments are computed is the compiler's choice.
        const std::int64_t first = noise_symbol(e.rng), second = noise_symbol(e.rng);
        put_pair(e, pair, first, second, false);
        continue;
      }
      do key = std::int64_t(e.rng.below(keys));
      while (last && value_of[std::size_t(key)] == kIgnored);
      std::int64_t& value = value_of[std::size_t(key)];
      const bool known = value != kIgnored;
      if (!known) value = symbols_ / 2 + std::int64_t(e.rng.below(std::uint64_t(symbols_ - symbols_ / 2)));
      put_pair(e, pair, key, value, known);
    }
  }

  [[nodiscard]] std::int64_t noise_symbol(Rng& rng) const {
    return symbols_ + std::int64_t(rng.below(std::uint64_t(shape_.vocabulary - symbols_)));
  }

  /// Every next token is a label in training, only values of known keys in the test.
  static void put_pair(Example& e, std::size_t pair, std::int64_t key, std::int64_t value, bool known) {
    const bool train = e.split == Split::train;
    const std::size_t t = 2 * pair;
    e.tokens[t] = key;
    if (t > 0 && train) e.labels[t - 1] = key;
    if (train || known) e.labels[t] = value;
    if (t + 1 < e.tokens.size()) e.tokens[t + 1] = value;
  }

  Index symbols_;  // keys and values
  double noise_;
};
}  // namespace

const TaskType task::mad_recall{
    .name = "mad-recall",
    .source = "Poli et al. 2024 (MAD)",
    .summary = "in-context recall: the value of every key that was seen before",
    .own_options = kOptions,
    .train_examples = "12800",
    .test_examples = "1280",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<MadRecall>(options, false); },
};

const TaskType task::mad_noisy{
    .name = "mad-noisy",
    .source = "Poli et al. 2024 (MAD)",
    .summary = "in-context recall where some pairs are noise",
    .own_options = kNoisyOptions,
    .train_examples = "12800",
    .test_examples = "1280",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<MadRecall>(options, true); },
};

}  // namespace isomer

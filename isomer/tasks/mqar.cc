// Multi-query associative recall: keys and values in pairs, then keys again, each to be answered with its value.
#include <algorithm>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/tasks/draw.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr OptionSpec kVocabulary{"vocabulary", "8192", "keys are of its lower half, values of its upper half"};
constexpr OptionSpec kFiller{"filler", "zero", "zero: token 0 between the queries; random: any token, much harder"};
constexpr OptionSpec kPower{"power", "0.01", "a: slot i after the pairs is asked with probability ∝ i^(a−1); 1 is uniform"};
constexpr std::array<OptionSpec, 5> kOptions{{
    {"length", "64", "tokens; even, at least 4 × pairs"},
    {"pairs", "4", "keys with their values"},
    kVocabulary,
    kFiller,
    kPower,
}};
constexpr std::array<OptionSpec, 3> kBasedOptions{kVocabulary, kFiller, kPower};

/// Sequences of one length.
struct Mix {
  Index length, pairs;
};
// Arora et al. 2024 (Based), table of the MQAR experiment: the first of train is drawn five times as often as the others.
constexpr std::array<Mix, 9> kBasedTrain{
    {{64, 4}, {64, 4}, {64, 4}, {64, 4}, {64, 4}, {128, 8}, {256, 16}, {256, 32}, {256, 64}}};
constexpr std::array<Mix, 7> kBasedTest{{{64, 4}, {64, 8}, {64, 16}, {128, 32}, {256, 64}, {512, 128}, {1024, 256}}};
// Batches have one length if their size divides this.
constexpr Index kTrainBlock = 256, kTestBlock = 1000;

class Mqar final : public Task {
 public:
  Mqar(const TaskOptions& options, bool based)
      : Task(options),
        based_(based),
        plain_(based ? kBasedTest.back() : Mix{options.size("length", 4, 1 << 20), options.size("pairs", 1, 1 << 14)}),
        random_filler_(options.choice("filler", {"zero", "random"}) == 1),
        power_(options.number("power", 0, 1)) {
    const auto [length, pairs] = plain_;
    const Index vocabulary = options.size("vocabulary", 4, 1 << 20);
    require(length % 2 == 0, "mqar", "expected an even length, got ", length);
    require(4 * pairs <= length, "mqar", "expected a length of at least 4 × pairs = ", 4 * pairs, ", got ", length);
    require(vocabulary > length, "mqar", "expected a vocabulary larger than the length of ", length, ", got ", vocabulary);
    shape_ = {.metric = Metric::example_accuracy, .length = length, .vocabulary = vocabulary, .classes = vocabulary};
    if (based_) block_ = kTrainBlock;
  }

 private:
  [[nodiscard]] Mix mix(Split split, std::uint64_t index) const {
    if (!based_) return plain_;
    if (split == Split::test) return kBasedTest[index / kTestBlock % kBasedTest.size()];
    // Every nine blocks hold the whole mixture, in an order of their own.
    const std::uint64_t block = index / kTrainBlock, n = kBasedTrain.size();
    return kBasedTrain[draw::permuted(block % n, n, 0, block / n)];
  }

  [[nodiscard]] Index length_of(Split split, std::uint64_t index) const override { return mix(split, index).length; }

  void draw(Example& e) const override {
    const std::size_t P = std::size_t(mix(e.split, e.index).pairs);
    const std::uint64_t half = std::uint64_t(shape_.vocabulary) / 2;
    const std::size_t slots = e.tokens.size() / 2 - P;
    e.scratch.integers.resize(std::size_t(shape_.length));
    const std::span<std::int64_t> all(e.scratch.integers);
    const auto keys = all.subspan(0, P), values = all.subspan(P, P), gaps = all.subspan(2 * P, slots);
    draw::distinct(e.rng, half - 1, keys);
    draw::distinct(e.rng, std::uint64_t(shape_.vocabulary) - half, values);
    draw_slots(e, gaps, P);
    for (std::size_t n = 0; n < P; ++n) {
      const std::int64_t key = keys[n] + 1, value = values[n] + std::int64_t(half);
      const std::size_t query = 2 * P + 2 * std::size_t(gaps[n]);
      e.tokens[2 * n] = key;
      e.tokens[2 * n + 1] = value;
      e.tokens[query] = key;
      e.labels[query] = value;
    }
    if (!random_filler_) return;
    for (std::size_t t = 2 * P; t < e.tokens.size(); ++t)
      if (e.labels[t] == kIgnored) e.tokens[t] = std::int64_t(e.rng.below(std::uint64_t(shape_.vocabulary)));
  }

  /// P different slots, one after the other with probability ∝ i^(a−1) among those left: the order of exponential waiting times
  /// with these rates (Efraimidis and Spirakis 2006).
  void draw_slots(Example& e, std::span<std::int64_t> slots, std::size_t P) const {
    e.scratch.reals.resize(std::size_t(shape_.length));
    std::vector<double>& waiting = e.scratch.reals;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      slots[i] = std::int64_t(i);
      waiting[i] = -std::log1p(-e.rng.uniform()) * std::pow(double(i + 1), 1 - power_);
    }
    std::partial_sort(slots.begin(), slots.begin() + std::ptrdiff_t(P), slots.end(),
                      [&](std::int64_t a, std::int64_t b) { return waiting[std::size_t(a)] < waiting[std::size_t(b)]; });
  }

  bool based_;
  Mix plain_;  // the longest of the mixture
  bool random_filler_;
  double power_;
};
}  // namespace

const TaskType task::mqar{
    .name = "mqar",
    .source = "Arora et al. 2023 (Zoology), figure 2",
    .summary = "after key-value pairs, say the value of each key that comes again",
    .own_options = kOptions,
    .train_examples = "100000",
    .test_examples = "3000",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<Mqar>(options, false); },
};

const TaskType task::mqar_based{
    .name = "mqar-based",
    .source = "Arora et al. 2024 (Based)",
    .summary = "mqar in a mixture of lengths and pairs, tested up to 1024 tokens and 256 pairs",
    .own_options = kBasedOptions,
    .train_examples = "180000",
    .test_examples = "7000",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<Mqar>(options, true); },
};

}  // namespace isomer

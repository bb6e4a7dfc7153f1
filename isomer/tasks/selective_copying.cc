// Symbols scattered in noise, to be said again in order; without scattering, the classical copy-memory task.
#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/tasks/draw.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 4> kOptions{{
    {"symbols", "16", "symbols to remember"},
    {"noise", "4096", "noise tokens between them"},
    {"vocabulary", "16", "0 is noise, the last one asks, the others are symbols"},
    {"scatter", "true", "true: at random places in the noise; false: all at the start"},
}};

class SelectiveCopying final : public Task {
 public:
  explicit SelectiveCopying(const TaskOptions& options)
      : Task(options),
        symbols_(options.size("symbols", 1, 4096)),
        noise_(options.size("noise", 0, 1 << 20)),
        scatter_(options.flag("scatter")) {
    const Index vocabulary = options.size("vocabulary", 3, 1 << 20);
    shape_ = {.metric = Metric::exact, .length = noise_ + 2 * symbols_, .vocabulary = vocabulary, .classes = vocabulary};
  }

 private:
  void draw(Example& e) const override {
    const std::size_t M = std::size_t(symbols_), asked = e.tokens.size() - M;
    e.scratch.integers.resize(M);
    std::vector<std::int64_t>& places = e.scratch.integers;
    for (std::size_t i = 0; i < M; ++i) places[i] = std::int64_t(i);
    if (scatter_) draw::distinct(e.rng, asked, places);
    std::sort(places.begin(), places.end());
    for (std::size_t i = 0; i < M; ++i) {
      const std::int64_t symbol = draw::between(e.rng, 1, shape_.vocabulary - 2);
      e.tokens[std::size_t(places[i])] = symbol;
      e.tokens[asked + i] = shape_.vocabulary - 1;
      e.labels[asked + i] = symbol;
    }
  }

  Index symbols_, noise_;
  bool scatter_;
};
}  // namespace

const TaskType task::selective_copying{
    .name = "selective-copying",
    .source = "Jing et al. 2019; Gu & Dao 2023 (Mamba)",
    .summary = "say symbols scattered in noise again, in order",
    .own_options = kOptions,
    .test_examples = "1000",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<SelectiveCopying>(options); },
};

}  // namespace isomer

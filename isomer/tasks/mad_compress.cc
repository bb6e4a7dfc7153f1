// MAD: compression of a sequence into the state after its last token.
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 2> kOptions{{
    {"vocabulary", "16", "random tokens, and the last one, which ends the sequence"},
    {"length", "32", "tokens"},
}};

class MadCompress final : public Task {
 public:
  explicit MadCompress(const TaskOptions& options) : Task(options) {
    const Index vocabulary = options.size("vocabulary", 2, 1 << 20);
    shape_ = {.kind = TaskKind::autoencoder,
              .length = options.size("length", 2, 1 << 20),
              .vocabulary = vocabulary,
              .classes = vocabulary};
  }

 private:
  void draw(Example& e) const override {
    for (std::size_t t = 0; t < e.tokens.size(); ++t) {
      const bool last = t + 1 == e.tokens.size();
      e.tokens[t] = last ? shape_.vocabulary - 1 : std::int64_t(e.rng.below(std::uint64_t(shape_.vocabulary - 1)));
      e.labels[t] = e.tokens[t];
    }
  }
};
}  // namespace

const TaskType task::mad_compress{
    .name = "mad-compress",
    .source = "Poli et al. 2024 (MAD)",
    .summary = "compression: every token again, from the state after the last one and its position",
    .own_options = kOptions,
    .train_examples = "12800",
    .test_examples = "1280",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<MadCompress>(options); },
};

}  // namespace isomer

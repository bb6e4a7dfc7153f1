// Pathfinder: are the two discs on the ends of one snake of dashes?
#include "isomer/tasks/pathfinder.h"

#include "isomer/base/error.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 2> kOptions{{
    {"size", "32", "pixels a side: 32 (Pathfinder) or 128 (Path-X)"},
    {"contour", "14", "dashes of a long snake; 14 is the hard version"},
}};

class Pathfinder final : public Task {
 public:
  explicit Pathfinder(const TaskOptions& options)
      : Task(options), style_(pathfinder::style_of(options.choice("size", {"32", "128"}) == 0 ? 32 : 128)) {
    // Longer snakes do not find their way in so small a picture.
    style_.contour = options.size("contour", 1, 20);
    shape_ = {.kind = TaskKind::tokens_class,
              .metric = Metric::example_accuracy,
              .length = style_.size * style_.size,
              .vocabulary = 256,
              .classes = 2,
              .row = style_.size};
  }

 private:
  void draw(Example& e) const override {
    pathfinder::Scene scene;
    e.scratch.integers.resize(e.tokens.size());
    draw_scene(e.rng, style_, scene, e.scratch.integers);
    const pathfinder::Discs discs = draw_discs(e.rng, scene);
    paint(style_, scene, discs, e.tokens);
    e.labels[0] = discs.connected ? 1 : 0;
  }

  pathfinder::Style style_;
};
}  // namespace

const TaskType task::pathfinder{
    .name = "pathfinder",
    .source = "Linsley et al. 2018; Tay et al. 2020 (Long Range Arena)",
    .summary = "are two discs on the ends of one dashed line, or of two?",
    .own_options = kOptions,
    .train_examples = "160000",
    .test_examples = "20000",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<Pathfinder>(options); },
};

}  // namespace isomer

// Pathfinder: are the two discs on the ends of one snake of dashes?
#include "isomer/tasks/pathfinder.h"

#include "isomer/base/error.h"
#include "isomer/tasks/draw.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 7> kOptions{{
    {"size", "32", "pixels a side: 32 (Pathfinder) or 128 (Path-X)"},
    {"contour", "14", "dashes of a long snake; 14 is the hard version"},
    {"shortest", "0", "training has pictures with so many dashes and all numbers up to contour; 0: with contour only"},
    {"mix", "auto", "share of the training pictures with fewer dashes than contour; auto: every number as often"},
    {"distractors", "auto", "short snakes, of a third of the dashes, as far as they find room; auto: 5, of 128 pixels 8"},
    {"as", "tokens", "tokens: a token 0 … 255 a pixel; patches: a vector a square"},
    {"patch", "4", "pixels a side of a patch"},
}};
// More than find room, and few enough that a scene holds their dashes.
constexpr Index kMostDistractors = 64;
// About the deviation of a pixel.
constexpr float kUnit = 43;

class Pathfinder final : public Task {
 public:
  explicit Pathfinder(const TaskOptions& options)
      : Task(options), style_(pathfinder::style_of(options.choice("size", {"32", "128"}) == 0 ? 32 : 128)) {
    // Longer snakes do not find their way in so small a picture.
    style_.contour = options.size("contour", 1, 20);
    shortest_ = options.size("shortest", 0, style_.contour);
    if (options.text("mix") != "auto") {
      mix_ = options.number("mix", 0, 1);
      require(shortest_ > 0 && shortest_ < style_.contour, "pathfinder", "expected shortest from 1 to ", style_.contour - 1,
              " with mix, got ", shortest_);
    }
    if (options.text("distractors") != "auto") style_.distractors = options.size("distractors", 0, kMostDistractors);
    const bool patches = options.choice("as", {"tokens", "patches"}) == 1;
    patch_ = options.size("patch", 1, style_.size);
    if (!patches) patch_ = 1;
    require(style_.size % patch_ == 0, "pathfinder", "expected a patch that divides ", style_.size, " pixels, got ", patch_);
    shape_ = {.kind = patches ? TaskKind::vectors_class : TaskKind::tokens_class,
              .metric = Metric::example_accuracy,
              .length = style_.size * style_.size / (patch_ * patch_),
              .vocabulary = patches ? 0 : 256,
              .classes = 2,
              .features = patches ? patch_ * patch_ : 0,
              .row = patches ? 0 : style_.size};
  }

 private:
  [[nodiscard]] Index drawn_contour(Rng& rng) const {
    if (mix_ < 0) return draw::between(rng, shortest_, style_.contour);
    return rng.uniform() < mix_ ? draw::between(rng, shortest_, style_.contour - 1) : style_.contour;
  }

  void draw(Example& e) const override {
    pathfinder::Scene scene;
    pathfinder::Style style = style_;
    if (shortest_ > 0 && e.split == Split::train) style.contour = drawn_contour(e.rng);
    // The cells that are taken, and the pixels where they are no tokens.
    const std::size_t area = std::size_t(style.size * style.size);
    e.scratch.integers.resize(2 * area);
    const std::span<std::int64_t> all(e.scratch.integers);
    draw_scene(e.rng, style, scene, all.first(area));
    const pathfinder::Discs discs = draw_discs(e.rng, scene);
    e.labels[0] = discs.connected ? 1 : 0;
    if (shape_.vocabulary > 0) return paint(style, scene, discs, e.tokens);
    paint(style, scene, discs, all.last(area));
    cut(all.last(area), e.inputs);
  }

  /// Patches row by row, and so the pixels of each.
  void cut(std::span<const std::int64_t> pixels, std::span<float> patches) const {
    const Index across = style_.size / patch_, area = patch_ * patch_;
    for (Index i = 0; i < Index(patches.size()); ++i) {
      const Index square = i / area, inside = i % area;
      const Index y = square / across * patch_ + inside / patch_, x = square % across * patch_ + inside % patch_;
      patches[std::size_t(i)] = float(pixels[std::size_t(y * style_.size + x)]) / kUnit;
    }
  }

  pathfinder::Style style_;
  Index shortest_ = 0, patch_ = 1;
  double mix_ = -1;  // negative: every length as often
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

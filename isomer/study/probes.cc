#include "isomer/study/probes.h"

#include <algorithm>

#include "isomer/base/error.h"

namespace isomer::study {

namespace {
constexpr Index kBatches = 8;  // of a gradient's share

/// Nothing but its output projection leads out of a mixer.
void silence(Session& session, const std::string& preset) {
  bool found = false;
  for (std::size_t i = 0; i < session.config().layers.size(); ++i) {
    if (session.config().layers[i].preset != preset) continue;
    std::ranges::fill(session.parameters().find("layers." + std::to_string(i) + ".mixer.o.weight").values(), 0.0f);
    found = true;
  }
  require(found, "study", "expected layers of ", preset, " to silence, got none");
}
}  // namespace

double value_with(Session& session, const Overrides& overrides, const ProbeOptions& options, Context& context) {
  const Recipe recipe = parse_recipe(parse_toml(to_toml(session.recipe()), "the cell's recipe"), overrides);
  Session other(recipe, context);
  other.parameters().assign(session.parameters().tensors());
  if (!options.silenced.empty()) silence(other, options.silenced);
  return other.evaluate({.examples = options.examples, .first = recipe.train.eval_examples}).value;
}

double gradient_share(Session& session, const std::string& preset, Context& context) {
  const TrainRecipe& train = session.recipe().train;
  Tape<float> tape(context);
  Batch batch;
  double share = 0;
  for (Index i = 0; i < kBatches; ++i) {
    session.task().fill(Split::train, std::uint64_t((session.steps_done() + i) * train.batch), train.batch, batch);
    // A stochastic window is drawn as often as its probability says.
    const bool narrow = double(i) < train.short_probability * double(kBatches);
    (void)session.model().loss(tape, input_of(batch), {.window = narrow ? train.short_window : 0});
    tape.backward();
    tape.clear();
    double own = 0, all = 0;
    for (const Parameter<float>& parameter : session.parameters().all()) {
      const std::size_t at = parameter.name().find(".mixer.");
      if (at == std::string::npos) continue;
      const std::size_t layer = std::stoul(parameter.name().substr(std::string("layers.").size()));
      for (const float g : parameter.gradient()) {
        all += double(g) * double(g);
        if (session.config().layers[layer].preset == preset) own += double(g) * double(g);
      }
    }
    session.parameters().zero_gradients();
    share += own / all / double(kBatches);
  }
  return share;
}

}  // namespace isomer::study

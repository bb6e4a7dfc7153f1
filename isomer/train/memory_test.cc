#include "isomer/train/memory.h"

#include <gtest/gtest.h>

#include "isomer/mixers/preset.h"
#include "isomer/nn/init.h"
#include "isomer/train/session.h"

namespace isomer {
namespace {

const char* const kRecipe = R"([model]
width = 64
layers = ["softmax", "softmax"]
[task]
name = "mqar"
vocabulary = 512
length = 256
[train]
batch = 4
)";

/// What a tape takes for a step, and what memory_of expects of it.
std::pair<double, double> activations(const Overrides& overrides) {
  const Recipe recipe = parse_recipe(parse_toml(kRecipe, "recipe.toml"), overrides);
  const std::unique_ptr<Task> task = task_of(recipe);
  const ModelConfig config = model_of(recipe, task->shape());
  Context context(1);
  Parameters<float> parameters;
  Model<float> model(config, parameters);
  initialise(parameters, 1);
  Tape<float> tape(context);
  Batch batch;
  task->fill(Split::train, 0, recipe.train.batch, batch);
  (void)model.loss(tape, input_of(batch), {.recompute = recipe.train.recompute});
  tape.backward();
  return {double(tape.bytes()), memory_of(recipe.train, config, task->shape().length).activations};
}

void expect_near(const Overrides& overrides, const std::string& what) {
  const auto [real, estimate] = activations(overrides);
  EXPECT_LT(real, kMemoryFactor * estimate) << what << " " << real / estimate;
  EXPECT_LT(estimate, kMemoryFactor * real) << what << " " << real / estimate;
}

TEST(Memory, IsNearWhatATapeTakesOfEveryMixer) {
  for (const Preset* preset : presets()) {
    const std::string name(preset->name);
    expect_near({"model.layers=" + name + "," + name}, name);
  }
}

TEST(Memory, KnowsWhatTheModelAndTheTrainingAddToIt) {
  expect_near({"model.mlp=none"}, "no MLP");
  expect_near({"model.mlp=channel-mix"}, "channel-mix");
  expect_near({"model.mlp=gelu", "model.positions=true"}, "gelu and positions");
  expect_near({"model.layers=gla*8", "train.recompute=true"}, "recompute");
  expect_near({"train.batch=16", "model.norm=layer"}, "batch");
}

TEST(Memory, CountsParametersAndMoments) {
  const Recipe recipe = parse_recipe(parse_toml(kRecipe, "recipe.toml"));
  Context context(1);
  Session session(recipe, context);
  const double numbers = double(session.parameters().trained_size());
  const MemoryEstimate adam = memory_of(recipe.train, session.config(), 256);
  EXPECT_EQ(adam.parameters, 8 * numbers);
  EXPECT_EQ(adam.optimiser, 8 * numbers);
  TrainRecipe plain = recipe.train;
  plain.optimiser = "sgd";
  EXPECT_EQ(memory_of(plain, session.config(), 256).optimiser, 4 * numbers);
  EXPECT_EQ(adam.total(), adam.parameters + adam.optimiser + adam.activations);
}

}  // namespace
}  // namespace isomer

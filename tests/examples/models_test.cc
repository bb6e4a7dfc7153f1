// As examples_test.cc, for what stands above the laws: tapes, modules, mixers, models, sessions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "isomer/autograd/tape.h"
#include "isomer/io/text.h"
#include "isomer/mixers/preset.h"
#include "isomer/models/executor.h"
#include "isomer/nn/block.h"
#include "isomer/nn/init.h"
#include "isomer/nn/modules.h"
#include "isomer/train/run_folder.h"
#include "isomer/train/session.h"
#include "tests/examples/surroundings.h"

namespace isomer {
namespace {

constexpr Index T = 6;
constexpr std::uint64_t seed = 1;

/// Numbers [1, T, 1, 256], or of one token.
struct Numbers {
  std::vector<float> memory = std::vector<float>(std::size_t(T) * 256, 0.1f);
  Var<float> of(Tape<float>& tape, Index length) { return tape.input(contiguous(memory.data(), {1, length, 1, 256})); }
};

TEST(Examples, Modules) {
  Context context;
  Parameters<float> parameters;
  Tape<float> tape(context);
  Numbers numbers;
  const Var<float> x = numbers.of(tape, T);
  // from isomer/nn/modules.h
  const Linear<float> head(parameters, "head", 256, 1000, {.bias = true});  // parameters head.weight, head.bias
  const Var<float> y = head(tape, x);                                       // x [B, T, 1, 256] → y [B, T, 1, 1000]
  // end
  EXPECT_EQ(y.dim(3), 1000);
}

TEST(Examples, Mixers) {
  Context context;
  Tape<float> tape(context);
  Numbers numbers;
  const Var<float> x = numbers.of(tape, T), prompt = x, tokens = x, token = numbers.of(tape, 1);
  {
    Parameters<float> parameters;
    // from isomer/nn/mixer.h
    Mixer<float> mixer(build_mixer("gla", {.width = 256}), parameters, "layers.0.mixer");
    Var<float> y = mixer.forward(tape, x);  // x, y [B, T, 1, width]
    // end
    initialise(parameters, seed);
    // from isomer/nn/mixer.h
    MixerState<float> state = mixer.start(1);
    (void)mixer.prefill(tape, prompt, state);          // any number of tokens
    Var<float> next = mixer.step(tape, token, state);  // one
    // end
    EXPECT_EQ(y.dim(1), T);
    EXPECT_TRUE(std::isfinite(next.value(0, 0, 0, 0)));
  }
  Parameters<float> parameters;
  // from isomer/nn/block.h
  Block<float> block(build_mixer("gla", {.width = 256, .layer = 0, .layers = 4}), parameters, "layers.0", {});
  Var<float> y = block.forward(tape, x);  // x, y [B, T, 1, width]
  // end
  initialise(parameters, seed);
  // from isomer/nn/block.h
  MixerState<float> state = block.start(1);
  Var<float> next = block.prefill(tape, tokens, state);  // as Mixer::prefill; one token is a step
  // end
  EXPECT_EQ(y.dim(3), 256);
  EXPECT_TRUE(std::isfinite(next.value(0, 0, 0, 0)));
}

TEST(Examples, Models) {
  const ModelConfig config{.width = 16, .layers = {{"gla", {{"heads", "2"}}}}, .vocabulary = 8};
  const std::vector<std::int64_t> tokens(32 * 128, 3), labels(32 * 128, 4);
  const std::vector<std::int64_t> prompt{1, 2, 3};
  const std::int64_t token = 4, step = 0;
  Context context;
  {
    // from isomer/models/model.h
    Parameters<float> parameters;
    const Model<float> model(config, parameters);  // config.h
    initialise(parameters, seed);
    Executor<float> executor(model, context);  // executor.h: runs it
    // end
    EXPECT_EQ(&executor.model(), &model);
  }
  Parameters<float> parameters;
  // from isomer/models/executor.h
  const Model<float> model(config, parameters);
  initialise(parameters, seed);
  Executor<float> executor(model, context, Record::yes);  // training
  const ModelResult r = executor.loss({.B = 32, .T = 128, .tokens = tokens, .labels = labels}, {.seed = seed, .step = step});
  executor.backward();  // adds to the gradients of all parameters
  // end
  // from isomer/models/executor.h
  ModelState<float> state = model.start(1);  // language models: streaming
  View<const float, 2> logits = executor.prefill(state, prompt);
  logits = executor.step(state, {&token, 1});
  // end
  EXPECT_GT(r.loss, 0);
  EXPECT_EQ(logits.shape[1], 8);
}

TEST(Examples, Configs) {
  const examples::InNewFolder here;
  const std::string path = "config.json";
  // from isomer/models/config.h
  ModelConfig config{.kind = ModelKind::language,
                     .width = 256,
                     .layers = {{"mlstm"}, {"sliding-window", {{"window", "128"}}}},
                     .vocabulary = 256};
  write_text(path, to_json(config));
  ModelConfig same = model_config(read_text(path), path);
  // end
  EXPECT_EQ(to_json(same), to_json(config));
}

TEST(Examples, ModelStates) {
  const examples::InNewFolder here;
  Parameters<float> parameters;
  const Model<float> model({.width = 16, .layers = {{"gla", {{"heads", "2"}}}}, .vocabulary = 8}, parameters);
  // from isomer/models/model_state.h
  ModelState<float> state = model.start(1);
  ModelState<float> fork = state;  // two continuations of one prompt
  fork.append(state);              // two sequences in one state
  state.save("state.safetensors");
  ModelState<float> later = model.load_state("state.safetensors");
  // end
  EXPECT_EQ(fork.batch(), 2);
  EXPECT_EQ(later.batch(), 1);
}

TEST(Examples, Sessions) {
  const tests::TemporaryFolder home;
  Context context;
  Recipe recipe;
  recipe.task = "parity";
  recipe.model.width = 8;
  recipe.mixers["softmax"] = {{"heads", "1"}};
  RunFolder folder = RunFolder::create((home.path / "run").string(), to_toml(recipe));
  {
    Session first(recipe, context);
    folder.save(first.checkpoint(), 1);
  }
  // from isomer/train/session.h
  Session session(recipe, context);
  session.resume(folder.load_latest());
  const StepReport step = session.step();
  const EvalReport eval = session.evaluate({.examples = 512});
  // end
  EXPECT_GT(step.loss, 0);
  EXPECT_GT(eval.loss, 0);
}

}  // namespace
}  // namespace isomer

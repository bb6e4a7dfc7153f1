// As examples_test.cc, for parameters, optimisers and states.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "isomer/autograd/linear.h"
#include "isomer/autograd/loss.h"
#include "isomer/base/tensor_view.h"
#include "isomer/io/safetensors_map.h"
#include "isomer/mixers/preset.h"
#include "isomer/nn/init.h"
#include "isomer/nn/mixer_dsf.h"
#include "isomer/nn/modules.h"
#include "isomer/nn/optimiser.h"
#include "isomer/nn/schedule.h"
#include "isomer/nn/stated_layer.h"
#include "isomer/nn/testing.h"
#include "tests/examples/surroundings.h"

namespace isomer {

namespace plain {
namespace {
double elu1(double x) { return x > 0 ? x + 1 : std::exp(x); }
// from isomer/nn/stated_layer.h
Rows linear_elu(const Plain& p) {
  const Heads in = projected(p);
  return p.linear("o", divided(p, map(in.q, elu1), map(in.k, elu1), in.v, 1e-6));
}
// end
TEST(Examples, StatedLayers) {
  // from isomer/nn/stated_layer.h
  expect_stated({"linear-elu", {{"bias", "false"}}, linear_elu});
  // end
}
}  // namespace
}  // namespace plain

namespace {

constexpr Index T = 6, kWidth = 256;
constexpr std::uint64_t seed = 1;

/// A loss of a matrix [1000, 256], and one step.
class LearningExamples : public ::testing::Test {
 protected:
  [[nodiscard]] Var<float> loss(Tape<float>& tape, Var<float> w) {
    const Var<float> x{make({1, T, 1, kWidth})}, target{make({1, T, 1, w.dim(2)}, 1.0f)};
    return ops::mean_squared_error(tape, ops::linear(tape, x, w), target);
  }
  examples::Arrays<float> make;
  Context context{1};
};

TEST_F(LearningExamples, Parameters) {
  Tape<float> tape(context);
  Index updates = 0;
  const auto update = [&](std::span<float> values, std::span<const float> gradient) {
    ++updates;
    EXPECT_EQ(values.size(), gradient.size());
  };
  // from isomer/nn/parameters.h
  Parameters<float> parameters;
  const Var<float> w = parameters.add({.name = "head.weight", .shape = {1000, 256}}).var;
  initialise(parameters, seed);  // init.h
  tape.backward(loss(tape, w));
  for (const Parameter<float>& p : parameters.all()) update(p.values(), p.gradient());
  parameters.zero_gradients();
  // end
  EXPECT_EQ(updates, 1);
  EXPECT_TRUE(parameters.find("head.weight").gradient().empty());
  const float before = parameters.find("head.weight").values()[5];
  // from isomer/nn/init.h
  initialise(parameters, seed);
  // end
  EXPECT_EQ(parameters.find("head.weight").values()[5], before);
}

TEST_F(LearningExamples, StoredParameters) {
  const auto file = std::make_shared<Tensors>();
  file->emplace("head.weight", Tensor(Type::bf16, {3, 4}));
  const TensorViews views = views_of(*file);
  // from isomer/nn/parameters.h
  Parameters<float> small(Type::bf16);  // to run a model, not to train it: matrices in half the memory, and no other copy
  Parameters<float> mapped(Type::bf16, {views, file});  // numbers of a file that stay where they are
  // end
  const ParameterSpec spec{.name = "head.weight", .shape = {3, 4}, .reader = Reader::products};
  EXPECT_EQ(small.add(spec).storage(), Type::bf16);
  EXPECT_EQ(small.own_bytes(), 24);
  EXPECT_EQ(mapped.add(spec).numbers().data, views.at("head.weight").data);
  EXPECT_EQ(mapped.own_bytes(), 0);
}

TEST_F(LearningExamples, Optimisers) {
  Tape<float> tape(context);
  Parameters<float> parameters;
  const Var<float> w = parameters.add({.name = "head.weight", .shape = {4, kWidth}}).var;
  initialise(parameters, seed);
  const double lr = 1e-3, before = parameters.find("head.weight").values()[0];
  const Schedule schedule{.steps = 10};
  const Index step = 0;
  std::size_t summed = 0;
  const auto sum_over_ranks = [&](std::span<float> group) { summed += group.size(); };
  const auto learn = [&](Var<float> loss) {
    // from isomer/nn/optimiser.h
    Optimiser<float> optimiser(parameters, {.kind = OptimiserKind::adamw, .weight_decay = 0.1, .clip = 1.0});
    tape.backward(loss);
    for (std::span<float> group : parameters.gradient_groups()) sum_over_ranks(group);  // if there are several
    const double norm = optimiser.step(lr * factor(schedule, step), context);
    parameters.zero_gradients();
    // end
    EXPECT_GT(norm, 0);
  };
  learn(loss(tape, w));
  EXPECT_EQ(summed, std::size_t(4 * kWidth));
  EXPECT_NE(parameters.find("head.weight").values()[0], before);
}

TEST_F(LearningExamples, MixerStates) {
  const examples::InNewFolder here;
  Tape<float> tape(context);
  Parameters<float> parameters;
  const Mixer<float> mixer(build_mixer("gla", {.width = 16}), parameters, "mixer");
  initialise(parameters, seed);
  const Var<float> prompt{make({1, T, 1, 16})};
  // from isomer/nn/mixer_state.h
  MixerState<float> state = mixer.start(1);
  (void)mixer.prefill(tape, prompt, state);  // any number of tokens, any number of times
  MixerState<float> fork = state;            // two continuations of one prompt
  state.save("state.safetensors");
  MixerState<float> later = mixer.load("state.safetensors");
  // end
  EXPECT_EQ(fork.positions()[0], T);
  EXPECT_EQ(later.positions()[0], T);
}

TEST_F(LearningExamples, StateValues) {
  constexpr Index B = 1;
  Parameters<float> parameters;
  const Mixer<float> mixer(build_mixer("gla", {.width = 16}), parameters, "mixer");
  initialise(parameters, seed);
  Tape<float> first(context), second(context);
  const Var<float> x1 = first.input(make({1, T, 1, 16}), true), x2{make({1, T, 1, 16})}, target{make({1, T, 1, 16}, 1.0f)};
  const auto mean = [&](Tape<float>& tape, Var<float> y) { return ops::mean_squared_error(tape, y, target); };
  // from isomer/nn/state_values.h
  StateValues<float> cut(mixer.graph(), B, first);           // before the first token
  Var<float> y = mixer.forward(first, x1, {.state = &cut});  // `cut` is now what these tokens end in
  const StateValues<float> start = cut.on(second);           // the same numbers on another tape
  StateValues<float> end = start;
  Var<float> z = mixer.forward(second, x2, {.state = &end});
  second.backward(mean(second, z));
  cut.receive(first, start, second);  // what arrived at the start of the second goes on
  first.backward();
  // end
  EXPECT_EQ(y.dim(1), T);
  EXPECT_EQ(end.positions()[0], 2 * T);
  EXPECT_NE(first.arrived(x1)(0, 0, 0, 0), 0);
}

TEST_F(LearningExamples, Layers) {
  using namespace isomer::testing;
  Parameters<double> parameters;
  const Linear<double> layer(parameters, "layer", 8, 4, {.bias = true});
  initialise(parameters, seed);
  // from isomer/nn/testing.h
  expect_parameter_gradients(parameters, random_values({2, 5, 1, 8}, 1),
                             [&](Tape<double>& tape, Var<double> x) { return layer(tape, x); });
  // end
  Parameters<double> store;
  const Mixer<double> mixer(build_mixer("gla", {.width = 16}), store, "mixer");
  initialise(store, seed);
  Tape<double> tape(context, Record::no);
  Values numbers = random_values({1, T, 1, 16}, 2);
  const Var<double> x = tape.input(contiguous(numbers.data.data(), numbers.shape));
  double error = 0;
  // from isomer/nn/mixer_dsf.h
  for (const LawCall& call : mixer.law_calls(tape, x)) error = std::max(error, dsf_error(call));
  // end
  EXPECT_LT(error, 1e-12);
}

}  // namespace
}  // namespace isomer

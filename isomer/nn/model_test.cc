// A small model of all parts: embedding, two blocks, tied head, cross-entropy, dropout, AdamW.
#include <gtest/gtest.h>

#include "isomer/autograd/loss.h"
#include "isomer/nn/block.h"
#include "isomer/nn/optimiser.h"
#include "isomer/nn/small_block.h"
#include "isomer/nn/testing.h"
#include "tests/heap.h"

namespace isomer {
namespace {
using testing::kWidth;
using testing::small_mixer;

constexpr Index kVocabulary = 11, kB = 2, kT = 9;

/// Two layers, one with an MLP.
template <class T>
struct Model {
  Parameters<T> parameters;
  Embedding<T> embedding{parameters, "embedding", kVocabulary, kWidth, graph::normal(0.1)};
  Block<T> first{small_mixer("gla", 0), parameters, "layers.0", {.mlp = {.kind = MlpKind::swiglu, .hidden = 12}}};
  Block<T> second{small_mixer("softmax", 1), parameters, "layers.1", {.mlp = {.kind = MlpKind::none}}};
  NormLayer<T> norm{parameters, "norm", kWidth};
  std::array<std::int64_t, kB * kT> ids{}, labels{};

  Model() {
    initialise(parameters, 7);
    Rng rng(8);
    for (std::int64_t& id : ids) id = std::int64_t(rng.below(kVocabulary));
    for (std::int64_t& label : labels) label = std::int64_t(rng.below(kVocabulary));
    labels[0] = -1;
  }
  Var<T> loss(Tape<T>& tape, const DropoutOptions& dropout = {.rate = 0}) {
    const auto matrix = [](const auto& list) { return contiguous(list.data(), {kB, kT}); };
    const Var<T> x = second.forward(tape, first.forward(tape, embedding(tape, matrix(ids)), dropout));
    return ops::linear_cross_entropy<T>(tape, {.x = norm(tape, x), .weight = embedding.weight(), .labels = matrix(labels)});
  }
};

struct Training {
  std::vector<double> losses, norms;
  long allocated = 0;  // by steps after the second
};

template <class T>
Training train(Model<T>& model, int steps, int threads) {
  Context context(threads);
  Tape<T> tape(context);
  Optimiser<T> optimiser(model.parameters, {.weight_decay = 0});
  Training all;
  all.losses.reserve(std::size_t(steps));
  all.norms.reserve(std::size_t(steps));
  for (int step = 0; step < steps; ++step) {
    const long before = tests::heap_allocations();
    const Var<T> loss = model.loss(tape, {.rate = step < 3 ? 0.1 : 0.0, .seed = 1, .stream = 2 * std::uint64_t(step)});
    all.losses.push_back(double(loss.value(0, 0, 0, 0)));
    tape.backward(loss);
    all.norms.push_back(optimiser.step(0.02, context));
    model.parameters.zero_gradients();
    tape.clear();
    if (step >= 2) all.allocated += tests::heap_allocations() - before;
  }
  return all;
}

template <class T>
class SmallModel : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SmallModel, Types);

TYPED_TEST(SmallModel, LearnsABatchByHeartWithoutAllocating) {
  Model<TypeParam> model;
  // Of several threads, one may be given its first piece of work late, and then takes its scratch.
  const Training all = train(model, 150, 1);
  EXPECT_NEAR(all.losses.front(), std::log(double(kVocabulary)), 1.5);
  EXPECT_LT(all.losses.back(), 0.05);
  EXPECT_EQ(all.allocated, 0);
}

TYPED_TEST(SmallModel, TakesTheSameStepsWithEveryNumberOfThreads) {
  Model<TypeParam> one, two;
  const Training first = train(one, 5, 1), second = train(two, 5, 2);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.norms, second.norms);
}

TEST(SmallModel, OfAnyPresetAllocatesNothingAfterTheSecondStep) {
  Context context(1);
  for (const Preset* preset : presets()) {
    constexpr Index kTokens = 40, kChannels = 16;
    Parameters<float> parameters;
    Block<float> block(build_mixer(*preset, {.width = kChannels}), parameters, "block");
    initialise(parameters, 1);
    std::vector<float> x(kTokens * kChannels, 0.5f);
    Tape<float> tape(context);
    long before = 0;
    for (int step = 0; step < 3; ++step) {
      before = tests::heap_allocations();
      tape.backward(block.forward(tape, tape.input(contiguous(x.data(), {1, kTokens, 1, kChannels}), true)));
      parameters.zero_gradients();
      tape.clear();
    }
    EXPECT_EQ(tests::heap_allocations() - before, 0) << preset->name;
  }
}

TEST(SmallModel, HasTheGradientsOfItsLoss) {
  Model<double> model;
  testing::draw(model.parameters, 5);
  // The model reads ids; the input is there for the signature.
  const auto layer = [&](Tape<double>& tape, Var<double>) { return model.loss(tape, {.rate = 0.2, .seed = 2}); };
  testing::expect_parameter_gradients(model.parameters, testing::random_values({1, 1, 1, 1}, 1), layer);
}

}  // namespace
}  // namespace isomer

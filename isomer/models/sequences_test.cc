// Packed sequences, batches whose sequences stand at different positions, and gradients through states, for whole models.
#include <gtest/gtest.h>

#include <algorithm>

#include "isomer/mixers/preset.h"
#include "isomer/models/executor.h"
#include "isomer/models/testing.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

using testing::Data;
using testing::SmallModel;
using tests::error_of;

// Of 16 tokens, with an empty one and one of a single token.
constexpr std::array<std::int64_t, 5> kOffsets{0, 6, 6, 7, 16};
constexpr Index kTokens = 16;

ModelConfig hybrid() { return testing::hybrid_config(kTokens); }

/// Of all parameters; and they start anew.
std::vector<double> gradients(Parameters<double>& parameters) {
  std::vector<double> all;
  for (const Parameter<double>& p : parameters.all()) {
    // None where none has arrived yet.
    const std::size_t begin = all.size();
    all.resize(begin + p.values().size());
    std::ranges::copy(p.gradient(), all.begin() + Index(begin));
  }
  parameters.zero_gradients();
  return all;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want, double factor = 1) {
  ASSERT_EQ(got.size(), want.size());
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::abs(got[i] - factor * want[i]));
    largest = std::max(largest, std::abs(want[i]));
  }
  EXPECT_GT(largest, 0);
  EXPECT_LE(worst, 1e-10 * largest);
}

// Of presets that can look ahead; the others never see what is behind a token.
TEST(Padding, ChangesNoLossAndNoGradientOfAnyPreset) {
  constexpr Index kLength = 5, kPadded = 9;
  Context context(1);
  Index tried = 0;
  for (const Preset* preset : presets()) {
    const Settings settings{{"heads", "2"}, {"causal", "false"}};
    const ModelConfig usual = testing::small_config(ModelKind::classifier);
    if (error_of([&] { (void)build_mixer(*preset, {.width = usual.width}, settings); }) != "no error") continue;
    SCOPED_TRACE(preset->name);
    ModelConfig config = usual;
    config.layers = {{std::string(preset->name), settings}, {"gla", {{"heads", "2"}}}, {std::string(preset->name), settings}};
    SmallModel<double> small(config);
    const Data data(config, 2, kPadded);
    Data alone(config, 1, kLength);
    alone.tokens.assign(data.tokens.begin(), data.tokens.begin() + kLength);
    alone.labels = {3};
    const auto run = [&](const ModelInput& in, bool recompute) {
      Tape<double> tape(context);
      (void)small.model.loss(tape, in, {.recompute = recompute});
      tape.backward();
      std::vector<double> all = gradients(small.parameters);
      tape.clear();
      const Var<double> logits = small.model.logits(tape, in).logits;
      all.insert(all.end(), logits.value.data, logits.value.data + logits.dim(3));
      return all;
    };
    const std::vector<double> want = run(alone.input(), false);
    const std::array<Index, 2> lengths{kLength, kPadded};
    const std::array<std::int64_t, 2> labels{3, -100};
    for (const bool recompute : {false, true}) {
      ModelInput in = data.input();
      in.lengths = lengths;
      in.labels = labels;
      expect_near(run(in, recompute), want);
    }
    ++tried;
  }
  EXPECT_GE(tried, 18);
}

TEST(PackedSequences, HaveTheLossAndGradientsOfEachAlone) {
  for (const bool recompute : {false, true}) {
    SmallModel<double> small(hybrid());
    Data data(small.model.config(), 1, kTokens);
    Context context(1);
    Executor<double> executor(small.model, context, Record::yes);
    double loss = 0;
    Index count = 0, correct = 0;
    std::vector<std::int64_t> predicted;
    std::vector<double> want(gradients(small.parameters).size());
    for (std::size_t i = 0; i + 1 < kOffsets.size(); ++i) {
      const std::size_t begin = std::size_t(kOffsets[i]), size = std::size_t(kOffsets[i + 1]) - begin;
      if (size == 0) continue;
      const std::span tokens(data.tokens), labels(data.labels);
      const ModelResult one =
          executor.loss({.B = 1, .T = Index(size), .tokens = tokens.subspan(begin, size), .labels = labels.subspan(begin, size)});
      executor.backward();
      const std::vector<double> own = gradients(small.parameters);
      for (std::size_t k = 0; k < own.size(); ++k) want[k] += double(one.count) * own[k];
      loss += double(one.count) * one.loss;
      count += one.count;
      correct += one.correct;
      predicted.insert(predicted.end(), one.predicted.begin(), one.predicted.end());
    }
    ModelInput packed = data.input();
    packed.offsets = kOffsets;
    const ModelResult all = executor.loss(packed, {.recompute = recompute});
    executor.backward();
    EXPECT_EQ(all.count, count);
    EXPECT_EQ(all.correct, correct);
    EXPECT_TRUE(std::ranges::equal(all.predicted, predicted));
    EXPECT_NEAR(all.loss, loss / double(count), 1e-12);
    expect_near(gradients(small.parameters), want, 1 / double(count));
  }
}

TEST(Streams, StandAtDifferentPositions) {
  constexpr Index kSteps = 3;
  constexpr std::array<std::int64_t, 4> kPrompts{0, 5, 6, 9};
  SmallModel<double> small(hybrid());
  const Data data(small.model.config(), 3, kTokens);
  Context context(1);
  Executor<double> executor(small.model, context);
  const auto token = [&](Index i, Index t) { return data.tokens[std::size_t(i * kTokens + t)]; };
  const auto length = [&](Index i) { return Index(kPrompts[std::size_t(i) + 1] - kPrompts[std::size_t(i)]); };
  std::vector<std::vector<double>> want(3);
  std::vector<std::int64_t> prompts;
  for (Index i = 0; i < 3; ++i) {
    ModelState<double> state = small.model.start(1);
    for (Index t = 0; t < length(i) + kSteps; ++t) {
      const std::int64_t next = token(i, t);
      const View<const double, 2> logits = executor.step(state, {&next, 1});
      if (t + 1 >= length(i)) want[std::size_t(i)].insert(want[std::size_t(i)].end(), logits.data, logits.data + logits.size());
      if (t < length(i)) prompts.push_back(next);
    }
  }
  ModelState<double> state = small.model.start(3);
  std::vector<std::vector<double>> got(3);
  const auto add = [&](View<const double, 2> logits) {
    for (Index i = 0; i < 3; ++i)
      got[std::size_t(i)].insert(got[std::size_t(i)].end(), logits.at(i, 0), logits.at(i, 0) + logits.shape[1]);
  };
  add(executor.prefill(state, prompts, kPrompts));
  const tests::TemporaryFolder folder;
  const std::string path = folder.path / "state.safetensors";
  state.save(path);
  state = small.model.load_state(path);
  for (Index i = 0; i < 3; ++i) EXPECT_EQ(state.positions()[std::size_t(i)], length(i));
  for (Index step = 0; step < kSteps; ++step) {
    const std::array<std::int64_t, 3> next{token(0, length(0) + step), token(1, length(1) + step), token(2, length(2) + step)};
    add(executor.step(state, next));
  }
  for (std::size_t i = 0; i < 3; ++i) expect_near(got[i], want[i]);
}

TEST(Streams, TakePackedPromptsOfAnyLengthAndKeepTheLogitsOfThoseWithoutTokens) {
  ModelConfig config = testing::small_config(ModelKind::language);
  SmallModel<double> small(config);
  const Data data(config, 1, 1500);
  Context context(1);
  Executor<double> executor(small.model, context);
  ModelState<double> alone = small.model.start(1), both = small.model.start(2);
  const View<const double, 2> want = executor.prefill(alone, data.tokens);
  const std::array<std::int64_t, 3> second{0, 0, 1500}, first{0, 3, 3};
  (void)executor.prefill(both, data.tokens, second);
  const std::vector<double> before(both.logits(11).at(1, 0), both.logits(11).at(1, 0) + 11);
  expect_near(before, {want.data, want.data + 11});
  const View<const double, 2> after = executor.prefill(both, std::span(data.tokens).first(3), first);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.at(1, 0)));
}

TEST(States, CarryTheGradientOverACut) {
  SmallModel<double> small(hybrid());
  Data data(small.model.config(), 2, kTokens);
  // As many labels in both halves.
  for (std::size_t i = 0; i < data.labels.size(); ++i) data.labels[i] = i % 2 == 0 ? data.tokens[i] : -1;
  Context context(1);
  Tape<double> whole(context), first(context), second(context);
  const double loss = small.model.loss(whole, data.input()).loss;
  whole.backward();
  const std::vector<double> want = gradients(small.parameters);

  std::array<std::vector<std::int64_t>, 2> tokens, labels;
  for (Index b = 0; b < 2; ++b)
    for (Index t = 0; t < kTokens; ++t) {
      const std::size_t half = t < kTokens / 2 ? 0 : 1, at = std::size_t(b * kTokens + t);
      tokens[half].push_back(data.tokens[at]);
      labels[half].push_back(data.labels[at]);
    }
  const auto input = [&](std::size_t half) {
    return ModelInput{.B = 2, .T = kTokens / 2, .tokens = tokens[half], .labels = labels[half]};
  };
  auto cut = small.model.start(2, first);
  double halves = small.model.loss(first, input(0), {}, &cut).loss;
  std::vector<StateValues<double>> start;
  for (const StateValues<double>& layer : cut) start.push_back(layer.on(second));
  auto end = start;
  halves += small.model.loss(second, input(1), {}, &end).loss;
  EXPECT_NEAR(halves, 2 * loss, 1e-12);
  second.backward();
  for (std::size_t layer = 0; layer < cut.size(); ++layer) cut[layer].receive(first, start[layer], second);
  first.backward();
  expect_near(gradients(small.parameters), want, 2);
}

TEST(PackedSequences, AreRefusedWhereTheyDoNotFit) {
  const SmallModel<float> small(testing::small_config(ModelKind::language)), other(testing::small_config(ModelKind::classifier));
  const Data data(small.model.config(), 1, 9), labels(other.model.config(), 1, 9);
  Context context(1);
  Executor<float> executor(small.model, context), classifier(other.model, context);
  const std::array<std::int64_t, 3> offsets{0, 4, 9}, wrong{0, 4, 8};
  ModelInput in = data.input(), classes = labels.input();
  in.offsets = wrong;
  classes.offsets = offsets;
  EXPECT_EQ(error_of([&] { (void)executor.loss(in); }), "model: expected offsets from 0 to T = 9, got 0 to 8");
  EXPECT_EQ(error_of([&] { (void)classifier.loss(classes); }),
            "model: expected a language model for packed sequences, got one of kind classifier");
  ModelState<float> state = small.model.start(3);
  EXPECT_EQ(error_of([&] { (void)executor.prefill(state, data.tokens, offsets); }),
            "model: expected 4 offsets for a state of 3 sequences, got 3");
  Tape<float> tape(context);
  auto states = small.model.start(2, tape);
  EXPECT_EQ(error_of([&] { (void)small.model.loss(tape, data.input(), {}, &states); }),
            "model: expected states of 2 layers and 1 sequences, got 2 and 2");
}

}  // namespace
}  // namespace isomer

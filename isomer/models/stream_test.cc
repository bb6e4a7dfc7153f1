#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>

#include "isomer/models/testing.h"
#include "tests/error_of.h"
#include "tests/heap.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
using testing::Data;
using testing::small_config;
using testing::SmallModel;
using tests::error_of;

constexpr Index kBatch = 2, kTokens = 13;

ModelConfig hybrid() {
  ModelConfig config = small_config(ModelKind::language);
  config.layers = testing::hybrid_layers();
  config.logit_cap = 5;
  config.positions = true;
  config.length = kTokens + 1;
  return config;
}

/// Tokens begin … end − 1 of every sequence.
std::vector<std::int64_t> part(const Data& data, Index begin, Index end) {
  std::vector<std::int64_t> tokens;
  for (Index b = 0; b < data.B; ++b)
    tokens.insert(tokens.end(), data.tokens.begin() + b * data.T + begin, data.tokens.begin() + b * data.T + end);
  return tokens;
}

double cross_entropy(View<const double, 2> logits, Index b, Index label) {
  double sum = 0;
  for (Index v = 0; v < logits.shape[1]; ++v) sum += std::exp(logits(b, v));
  return std::log(sum) - logits(b, label);
}

TEST(Streaming, GivesTheLossesOfTraining) {
  const ModelConfig config = hybrid();
  SmallModel<double> small(config);
  Data data(config, kBatch, kTokens);
  Context context(2);
  Tape<double> tape(context, Record::no);
  // The loss at one token of one sequence.
  const auto want = [&](Index b, Index t, std::int64_t label) {
    data.labels.assign(std::size_t(kBatch * kTokens), -1);
    data.labels[std::size_t(b * kTokens + t)] = label;
    return small.model.loss(tape, data.input()).loss;
  };
  for (const Index prompt : {1, 4, 12}) {
    ModelState<double> state = small.model.start(kBatch);
    View<const double, 2> logits = small.model.prefill(tape, part(data, 0, prompt), state);
    for (Index t = prompt - 1;;) {
      EXPECT_EQ(state.positions()[0], t + 1);
      const std::vector<double> copy(logits.data, logits.data + logits.size());
      for (Index b = 0; b < kBatch; ++b)
        for (const std::int64_t label : {0, 7})
          EXPECT_NEAR(cross_entropy(contiguous(copy.data(), {kBatch, 11}), b, label), want(b, t, label), 1e-12);
      if (++t == kTokens) break;
      logits = small.model.step(tape, part(data, t, t + 1), state);
    }
  }
}

TEST(Streaming, CutsLongPromptsWithoutChangingTheResult) {
  ModelConfig config = small_config(ModelKind::language);
  config.layers = {{"mlstm", {{"heads", "2"}}}, {"sliding-window", {{"heads", "2"}, {"window", "16"}}}};
  SmallModel<double> small(config);
  const Data data(config, 3, 1100);
  Context context(2);
  Tape<double> tape(context, Record::no);
  ModelState<double> whole = small.model.start(3), cut = small.model.start(3);
  const View<const double, 2> logits = small.model.prefill(tape, part(data, 0, 1100), whole);
  const std::vector<double> want(logits.data, logits.data + logits.size());
  (void)small.model.prefill(tape, part(data, 0, 700), cut);
  const View<const double, 2> got = small.model.prefill(tape, part(data, 700, 1100), cut);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got.data[i], want[i], 1e-11);
  EXPECT_EQ(whole.positions()[0], 1100);
}

TEST(Streaming, HasAStateThatCanBeForkedAndSaved) {
  const ModelConfig config = hybrid();
  SmallModel<float> small(config);
  const Data data(config, kBatch, kTokens);
  Context context(1);
  Tape<float> tape(context, Record::no);
  ModelState<float> state = small.model.start(kBatch);
  (void)small.model.prefill(tape, part(data, 0, 7), state);
  const tests::TemporaryFolder folder;
  const std::string path = folder.path / "state.safetensors";
  state.save(path);
  ModelState<float> fork = state, loaded = small.model.load_state(path);
  EXPECT_EQ(loaded.bytes(), state.bytes());
  EXPECT_EQ(loaded.positions()[0], 7);
  (void)small.model.step(tape, part(data, 0, 1), fork);  // goes its own way
  const auto rest = [&](ModelState<float>& from) {
    const View<const float, 2> logits = small.model.prefill(tape, part(data, 7, 13), from);
    return std::vector<float>(logits.data, logits.data + logits.size());
  };
  const std::vector<float> want = rest(state);
  EXPECT_EQ(rest(loaded), want);
  EXPECT_NE(rest(fork), want);

  ModelConfig config2 = config;
  config2.layers.pop_back();
  SmallModel<float> other(config2);
  const std::string error = error_of([&] { (void)other.model.load_state(path); });
  EXPECT_EQ(error.find("cannot load " + path + ": state: expected the fingerprint gla-"), 0) << error;
}

TEST(Streaming, EndsWhereLearnedPositionsEnd) {
  SmallModel<float> small(hybrid());
  const Data data(hybrid(), kBatch, kTokens);
  Context context(1);
  Tape<float> tape(context, Record::no);
  ModelState<float> state = small.model.start(kBatch);
  (void)small.model.prefill(tape, part(data, 0, kTokens), state);
  (void)small.model.step(tape, part(data, 0, 1), state);
  EXPECT_EQ(error_of([&] { (void)small.model.step(tape, part(data, 0, 1), state); }),
            "model: expected at most 14 tokens (learned positions), got 15");
}

TEST(Streaming, TakesNoMemoryForStepsOfRecurrentLayers) {
  ModelConfig config = small_config(ModelKind::language);
  config.layers = {{"gla", {{"heads", "2"}}}, {"sliding-window", {{"heads", "2"}, {"window", "3"}}}};
  SmallModel<float> small(config);
  Context context(1);
  Tape<float> tape(context, Record::no);
  ModelState<float> state = small.model.start(1);
  const std::int64_t token = 3;
  long before = 0;
  for (int step = 0; step < 20; ++step) {
    if (step == 8) before = tests::heap_allocations();
    (void)small.model.step(tape, {&token, 1}, state);
  }
  EXPECT_EQ(tests::heap_allocations(), before);
}

TEST(Streaming, IsForLanguageModels) {
  SmallModel<float> classifier(small_config(ModelKind::classifier));
  EXPECT_EQ(error_of([&] { (void)classifier.model.start(1); }),
            "model: expected a language model to stream, got one of kind classifier");
  SmallModel<float> small(small_config(ModelKind::language));
  Context context(1);
  Tape<float> tape(context, Record::no);
  ModelState<float> state = small.model.start(2);
  const std::vector<std::int64_t> three{1, 2, 3};
  SmallModel<float> regression(small_config(ModelKind::regression));
  EXPECT_EQ(error_of([&] { (void)regression.model.prefill(tape, three, state); }),
            "model: expected a language model to stream, got one of kind regression");
  EXPECT_EQ(error_of([&] { (void)regression.model.load_state("state.safetensors"); }),
            "model: expected a language model to stream, got one of kind regression");
  EXPECT_EQ(error_of([&] { (void)small.model.step(tape, three, state); }),
            "model: expected one token for each of 2 sequences, got 3");
  EXPECT_EQ(error_of([&] { (void)small.model.prefill(tape, three, state); }),
            "model: expected as many tokens for each of 2 sequences, got 3");
}

TEST(Stream, ThatMultipliesInBf16IsCloseToOneThatDoesNot) {
  const ModelConfig config{.kind = ModelKind::language, .width = 32, .layers = testing::hybrid_layers(), .vocabulary = 24};
  testing::SmallModel<float> rounding(config, 1, Type::bf16), plain(config, 1, Type::bf16);
  rounding.parameters.multiply_in_bf16();
  std::vector<std::int64_t> prompt(20);
  std::iota(prompt.begin(), prompt.end(), 0);
  const auto logits = [&](const testing::SmallModel<float>& small, int threads, std::size_t at_once) {
    Context context(threads);
    Tape<float> tape(context, Record::no);
    ModelState<float> state = small.model.start(1);
    View<const float, 2> next = small.model.prefill(tape, std::span(prompt).first(at_once), state);
    for (std::size_t i = at_once; i < prompt.size(); ++i) next = small.model.step(tape, {&prompt[i], 1}, state);
    return std::vector<float>(next.data, next.data + next.size());
  };
  const auto apart = [](const std::vector<float>& a, const std::vector<float>& b) {
    float most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
    return most / std::abs(*std::ranges::max_element(b, {}, [](float x) { return std::abs(x); }));
  };
  const std::vector<float> exact = logits(plain, 1, 20), once = logits(rounding, 1, 20);
  EXPECT_EQ(once, logits(rounding, 2, 20)) << "threads change nothing";
  // A number is off by 2^-9 of itself at most.
  EXPECT_GT(apart(once, exact), 0);
  EXPECT_LT(apart(once, exact), 0.03);
  // Sums in another order may be rounded the other way.
  EXPECT_LT(apart(logits(rounding, 1, 7), once), 0.03);
}

TEST(Stream, OnWeightsInFewerBitsIsTheModelWithRoundedWeights) {
  ModelConfig config{
      .kind = ModelKind::language, .width = 16, .layers = testing::hybrid_layers(), .tied = false, .vocabulary = 24};
  config.layers.push_back({"softmax", {{"position", "learned"}, {"position_length", "32"}}});
  for (const Type type : {Type::bf16, Type::f16}) {
    testing::SmallModel<float> rounded(config, 1, type), plain(config);
    const Index all = plain.model.step_bytes(plain.parameters);
    rounded.parameters.assign(plain.parameters.tensors());
    plain.parameters.assign(rounded.parameters.tensors());
    Index matrices = 0, tables = (24 - 1) * 16 + (32 - 1) * 16;
    for (const Parameter<float>& p : rounded.parameters.all())
      if (p.storage() == type) matrices += p.var.value.size();
    EXPECT_GT(matrices, plain.parameters.trained_size() * 3 / 4);
    EXPECT_EQ(all, 4 * (plain.parameters.trained_size() - tables));
    EXPECT_EQ(rounded.model.step_bytes(rounded.parameters), all - 2 * (matrices - (24 - 1) * 16));
    std::vector<std::vector<float>> logits;
    for (const int threads : {1, 2}) {
      Context context(threads);
      for (auto* model : {&rounded, &plain}) {
        Tape<float> tape(context, Record::no);
        ModelState<float> state = model->model.start(1);
        std::vector<float>& seen = logits.emplace_back();
        const auto keep = [&](View<const float, 2> next) { seen.insert(seen.end(), next.data, next.data + next.size()); };
        std::vector<std::int64_t> prompt(12);
        std::iota(prompt.begin(), prompt.end(), 0);
        keep(model->model.prefill(tape, prompt, state));
        for (std::int64_t token = 12; token < 24; ++token) keep(model->model.step(tape, {&token, 1}, state));
      }
    }
    EXPECT_EQ(logits[0], logits[2]) << "threads change nothing";
    EXPECT_EQ(logits[0], logits[1]) << "weights are widened exactly";
  }
}

}  // namespace
}  // namespace isomer

// Models whose layers have something in common: a parameter of the whole model.
#include <gtest/gtest.h>

#include <cmath>

#include "isomer/mixers/preset.h"
#include "isomer/models/cost.h"
#include "isomer/models/testing.h"
#include "isomer/nn/testing.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
using testing::Data;
using testing::SmallModel;
using tests::error_of;

constexpr Index kBatch = 2, kTokens = 7;

LayerConfig hgrn2() { return {"hgrn2", {{"heads", "2"}}}; }
LayerConfig softmax() { return {"softmax", {{"heads", "2"}}}; }

ModelConfig model_of(const std::vector<LayerConfig>& layers) {
  ModelConfig config = testing::small_config(ModelKind::language);
  config.layers = layers;
  config.mlp = MlpKind::none;
  return config;
}

/// Stacks of one preset, and hybrids in which its first layer is not that of the model.
std::vector<ModelConfig> models() {
  return {model_of({hgrn2(), hgrn2(), hgrn2()}), model_of({softmax(), hgrn2(), softmax(), hgrn2()})};
}

std::string name_of(const ModelConfig& config) {
  std::string all;
  for (const LayerConfig& layer : config.layers) all.append(all.empty() ? "" : " ").append(layer.preset);
  return all;
}

/// With parameters away from where they start, so that nothing is zero by chance.
template <class T>
struct Moved : SmallModel<T> {
  explicit Moved(const ModelConfig& config) : SmallModel<T>(config) {
    Rng rng(7);
    for (const Parameter<T>& p : this->parameters.all())
      for (T& x : p.values()) x += T(0.2 * rng.normal());
  }
};

std::vector<double> random_numbers(std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<double> all(count);
  for (double& x : all) x = rng.normal();
  return all;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Layers, ShareOneParameterOfTheModel) {
  const ModelConfig config = model_of({hgrn2(), hgrn2(), softmax(), hgrn2()});
  SmallModel<float> small(config);
  const Parameter<float>& bounds = small.parameters.find("shared.hgrn2.bounds");
  EXPECT_EQ(bounds.spec.shape, (std::vector<Index>{4, 8}));
  for (const float x : bounds.values()) EXPECT_EQ(x, 0);
  EXPECT_EQ(cost_of(config, 10).parameters, small.parameters.trained_size());
  for (const Parameter<float>& p : small.parameters.all()) EXPECT_EQ(p.name().find("bound") == std::string::npos, &p != &bounds);
  // The first layer has none, wherever the others are.
  EXPECT_THROW((void)SmallModel<float>(model_of({hgrn2(), softmax()})).parameters.find("shared.hgrn2.bounds"), Error);
}

TEST(Layers, RefuseASharedParameterOfTwoShapes) {
  const LayerConfig other{"hgrn2", {{"heads", "2"}, {"key", "3"}}};
  EXPECT_EQ(error_of([&] {
              SmallModel<float> small(model_of({hgrn2(), hgrn2(), other}));
            }),
            "parameters: expected shared.hgrn2.bounds [3, 8] as in another layer, got [3, 6]");
}

TEST(Layers, OfHgrn2HaveBoundsThatAddUp) {
  constexpr Index kWidth = 8, kLayers = 4;
  Parameters<double> parameters;
  std::vector<Mixer<double>> mixers;
  for (Index layer = 0; layer < kLayers; ++layer)
    mixers.emplace_back(build_mixer("hgrn2", {.width = kWidth, .layer = layer, .layers = kLayers}, {{"heads", "2"}}), parameters,
                        std::to_string(layer));
  initialise(parameters, 1);
  const std::span<double> logits = parameters.find("shared.hgrn2.bounds").values();
  std::ranges::copy(random_numbers(logits.size(), 2), logits.begin());
  std::vector<double> x = random_numbers(kWidth, 3);
  Context context(1);
  for (Index layer = 0; layer < kLayers; ++layer) {
    Tape<double> tape(context, Record::no);
    const auto calls = mixers[std::size_t(layer)].law_calls(tape, tape.input(contiguous(x.data(), {1, 1, 1, kWidth})));
    const double* log_decay = calls[0].inputs.at("log_decay").data<double>();
    const std::span<double> weight = parameters.find(std::to_string(layer) + ".f.weight").values();
    for (Index n = 0; n < kWidth; ++n) {
      double sum = 0, bound = 0, z = 0;
      for (Index l = 0; l < kLayers; ++l) sum += std::exp(logits[std::size_t(l * kWidth + n)]);
      for (Index l = 1; l <= layer; ++l) bound += std::exp(logits[std::size_t(l * kWidth + n)]) / sum;
      for (Index i = 0; i < kWidth; ++i) z += weight[std::size_t(n * kWidth + i)] * x[std::size_t(i)];
      EXPECT_NEAR(std::exp(log_decay[n]), bound + (1 - bound) * sigmoid(z), 1e-13) << "layer " << layer;
    }
  }
}

TEST(Layers, HaveTheGradientsOfTheLoss) {
  for (const ModelConfig& config : models()) {
    Moved<double> small(config);
    const Data data(config, kBatch, kTokens);
    Context context(2);
    Tape<double> tape(context), plain(context, Record::no);
    small.model.loss(tape, data.input());
    tape.backward();
    const auto loss = [&] {
      const double value = small.model.loss(plain, data.input()).loss;
      plain.clear();
      return value;
    };
    for (const Parameter<double>& p : small.parameters.all()) {
      ASSERT_FALSE(p.gradient().empty()) << name_of(config) << ": " << p.name();
      EXPECT_LE(testing::gradient_error(p.values(), p.gradient(), loss), 1e-6) << name_of(config) << ": " << p.name();
    }
  }
}

/// The loss and all gradients of one step.
template <class T>
std::vector<T> step_of(const ModelConfig& config, int threads, const Pass& pass) {
  Moved<T> small(config);
  const Data data(config, kBatch, kTokens);
  Context context(threads);
  Tape<T> tape(context);
  std::vector<T> all{T(small.model.loss(tape, data.input(), pass).loss)};
  tape.backward();
  for (const Parameter<T>& p : small.parameters.all()) all.insert(all.end(), p.gradient().begin(), p.gradient().end());
  return all;
}

TEST(Layers, GiveTheSameWhenBlocksAreRecomputedAndForAnyThreads) {
  for (const ModelConfig& config : models()) {
    const std::vector<float> want = step_of<float>(config, 1, {});
    EXPECT_EQ(step_of<float>(config, 2, {}), want) << name_of(config);
    const std::vector<double> kept = step_of<double>(config, 1, {}), again = step_of<double>(config, 2, {.recompute = true});
    ASSERT_EQ(kept.size(), again.size());
    for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_NEAR(again[i], kept[i], 1e-14) << name_of(config);
  }
}

/// Tokens begin … end − 1 of every sequence.
std::vector<std::int64_t> part(const Data& data, Index begin, Index end) {
  std::vector<std::int64_t> tokens;
  for (Index b = 0; b < data.B; ++b)
    tokens.insert(tokens.end(), data.tokens.begin() + b * data.T + begin, data.tokens.begin() + b * data.T + end);
  return tokens;
}

TEST(Layers, StreamWhatTheyTrainOnWhereverTheSequenceIsCut) {
  for (const ModelConfig& config : models()) {
    Moved<double> small(config);
    Data data(config, 1, kTokens);
    Context context(2);
    Tape<double> tape(context, Record::no);
    constexpr std::int64_t kLabel = 3;
    data.labels.assign(std::size_t(kTokens), -1);
    data.labels.back() = kLabel;
    const double want = small.model.loss(tape, data.input()).loss;
    const tests::TemporaryFolder folder;
    for (Index cut = 1; cut <= kTokens; ++cut) {
      ModelState<double> state = small.model.start(1);
      View<const double, 2> logits = small.model.prefill(tape, part(data, 0, cut), state);
      state.save(folder.path / "state.safetensors");
      state = small.model.load_state(folder.path / "state.safetensors");
      for (Index t = cut; t < kTokens; ++t) logits = small.model.step(tape, part(data, t, t + 1), state);
      double sum = 0;
      for (Index v = 0; v < logits.shape[1]; ++v) sum += std::exp(logits(0, v));
      EXPECT_NEAR(std::log(sum) - logits(0, kLabel), want, 1e-12) << name_of(config) << " cut at " << cut;
    }
  }
}

TEST(Layers, AreNamedByWhatTheyShareWhenItsGradientIsNotFinite) {
  const ModelConfig config = models()[0];
  Moved<float> small(config);
  const Data data(config, kBatch, kTokens);
  Context context(1);
  Tape<float> tape(context);
  small.model.loss(tape, data.input());
  tape.backward();
  small.parameters.find("shared.hgrn2.bounds").gradient()[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(small.model.first_gradient_not_finite(small.parameters), "the layers with shared.hgrn2.bounds");
}

}  // namespace
}  // namespace isomer

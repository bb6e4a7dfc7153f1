// Models whose layers have something in common: a parameter of the whole model, or a value of the first of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "isomer/mixers/preset.h"
#include "isomer/models/cost.h"
#include "isomer/models/testing.h"
#include "tests/error_of.h"
#include "tests/heap.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
using testing::Data;
using testing::SmallModel;
using tests::error_of;

constexpr Index kBatch = 2, kTokens = 7;

LayerConfig hgrn2() { return {"hgrn2", {{"heads", "2"}}}; }
LayerConfig rwkv7() {
  return {"rwkv7", {{"heads", "2"}, {"decay_rank", "2"}, {"rate_rank", "2"}, {"gate_rank", "2"}, {"mix_rank", "3"}}};
}
LayerConfig softmax() { return {"softmax", {{"heads", "2"}}}; }

ModelConfig model_of(const std::vector<LayerConfig>& layers) {
  ModelConfig config = testing::small_config(ModelKind::language);
  config.layers = layers;
  config.mlp = MlpKind::none;
  return config;
}

/// Stacks of one preset, and hybrids in which its first layer is not that of the model.
std::vector<ModelConfig> models() {
  return {model_of({hgrn2(), hgrn2(), hgrn2()}), model_of({rwkv7(), rwkv7(), rwkv7()}),
          model_of({softmax(), rwkv7(), hgrn2(), rwkv7(), hgrn2()})};
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

TEST(Layers, TakeTheValueOfTheFirstLayerOfTheirPreset) {
  // The second of two layers, and its law's v by hand.
  constexpr Index kWidth = 8, kRank = 3;
  const Settings settings = rwkv7().options;
  Parameters<double> parameters;
  Mixer<double> first(build_mixer("rwkv7", {.width = kWidth, .layer = 1, .layers = 3}, settings), parameters, "1");
  Mixer<double> second(build_mixer("rwkv7", {.width = kWidth, .layer = 2, .layers = 3, .before = 1}, settings), parameters, "2");
  initialise(parameters, 1);
  const auto numbers = [&](const char* name) { return parameters.find(name).values(); };
  for (const double x : numbers("2.mix.bias")) EXPECT_EQ(x, 1);
  for (const double x : numbers("2.mix_down.weight")) EXPECT_EQ(x, 0);
  EXPECT_THROW((void)parameters.find("1.mix.bias"), Error);
  Rng rng(4);
  for (const Parameter<double>& p : parameters.all())
    for (double& x : p.values()) x += 0.5 * rng.normal();
  std::vector<double> x = random_numbers(kWidth, 5), y = random_numbers(kWidth, 6);
  const auto on = [&](Tape<double>& tape, std::vector<double>& of) {
    return tape.input(contiguous(of.data(), {1, 1, 1, kWidth}));
  };
  Context context(1);
  Tape<double> tape(context, Record::no);
  std::array<Var<double>, 1> given;
  (void)first.forward(tape, on(tape, x), {.given = given});
  const std::vector<LawCall> calls = second.law_calls(tape, on(tape, y), {.taken = given});
  const double* got = calls[0].inputs.at("v").data<double>();
  // The first token has none before it, so that its mix with that is x (1 − mu).
  const auto projected = [&](const std::vector<double>& of, const char* mu, const char* weight, Index row) {
    double sum = 0;
    for (Index i = 0; i < kWidth; ++i)
      sum += of[std::size_t(i)] * (1 - numbers(mu)[std::size_t(i)]) * numbers(weight)[std::size_t(row * kWidth + i)];
    return sum;
  };
  for (Index n = 0; n < kWidth; ++n) {
    double share = numbers("2.mix.bias")[std::size_t(n)];
    for (Index r = 0; r < kRank; ++r)
      share += projected(y, "2.mu_v", "2.mix_down.weight", r) * numbers("2.mix.weight")[std::size_t(n * kRank + r)];
    const double before = projected(x, "1.mu_v", "1.v.weight", n), own = projected(y, "2.mu_v", "2.v.weight", n);
    EXPECT_NEAR(got[n], own + (before - own) * sigmoid(share), 1e-13);
  }
  EXPECT_EQ(error_of([&] { (void)second.forward(tape, on(tape, y)); }),
            "mixer: expected v of the first layer of rwkv7, got none");
  given[0] = tape.make({1, 2, 1, kWidth}, {});
  EXPECT_EQ(error_of([&] { (void)second.forward(tape, on(tape, y), {.taken = given}); }),
            "mixer: expected v of the first layer of rwkv7 as [1, 1, 1, 8], got [1, 2, 1, 8]");
}

TEST(Layers, RefuseAValueOfAnotherSize) {
  LayerConfig other = rwkv7();
  other.options["value"] = "3";
  EXPECT_EQ(error_of([&] {
              SmallModel<float> small(model_of({softmax(), rwkv7(), other}));
            }),
            "model: expected v [1, 6] of layer 1 (rwkv7) for layer 2, got [1, 8]");
}

TEST(Layers, OfRwkv7ReadTheFirstOfThemAndNotTheOneBefore) {
  const ModelConfig config = model_of({softmax(), rwkv7(), rwkv7(), rwkv7()});
  Moved<double> small(config);
  for (const char* name : {"layers.1.mixer.mix.bias", "shared.rwkv7.v"}) EXPECT_THROW((void)small.parameters.find(name), Error);
  EXPECT_EQ(cost_of(config, 10).parameters, small.parameters.trained_size());
  // With outputs of nothing the first layer reaches the others through its v alone.
  for (const char* name : {"layers.1.mixer.o.weight", "layers.2.mixer.o.weight"})
    std::ranges::fill(small.parameters.find(name).values(), 0.0);
  const Data data(config, kBatch, kTokens);
  Context context(1);
  Tape<double> tape(context);
  small.model.loss(tape, data.input());
  tape.backward();
  const auto largest = [&](const char* name) {
    double most = 0;
    for (const double g : small.parameters.find(name).gradient()) most = std::max(most, std::abs(g));
    return most;
  };
  EXPECT_GT(largest("layers.1.mixer.v.weight"), 1e-6);
  EXPECT_EQ(largest("layers.1.mixer.r.weight"), 0);
  EXPECT_EQ(largest("layers.2.mixer.v.weight"), 0);
}

/// The largest difference of a gradient from central differences, over the largest of them; of several steps the best, because a
/// long one errs where the loss bends (norms of small values do) and a short one by rounding.
template <class Loss>
double slope_error(const Parameter<double>& p, const Loss& loss) {
  double least = HUGE_VAL;
  for (const double h : {1e-5, 1e-6}) {
    double worst = 0, largest = 1e-3;
    for (std::size_t i = 0; i < p.values().size(); ++i) {
      double& x = p.values()[i];
      const double before = x;
      x = before + h;
      const double up = loss();
      x = before - h;
      const double slope = (up - loss()) / (2 * h), error = std::abs(slope - p.gradient()[i]);
      x = before;
      worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
      largest = std::max(largest, std::abs(slope));
    }
    least = std::min(least, worst / largest);
  }
  return least;
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
      EXPECT_LE(slope_error(p, loss), 1e-6) << name_of(config) << ": " << p.name();
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
    double largest = 0;
    for (const double x : kept) largest = std::max(largest, std::abs(x));
    // A pass that leaves nothing for the way back may take another form.
    for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_NEAR(again[i], kept[i], 1e-14 * largest) << name_of(config);
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
      ModelState<double> saved = small.model.start(1);
      View<const double, 2> logits = small.model.prefill(tape, part(data, 0, cut), saved);
      saved.save(folder.path / "state.safetensors");
      ModelState<double> state = small.model.load_state(folder.path / "state.safetensors");
      for (Index t = cut; t < kTokens; ++t) logits = small.model.step(tape, part(data, t, t + 1), state);
      double sum = 0;
      for (Index v = 0; v < logits.shape[1]; ++v) sum += std::exp(logits(0, v));
      EXPECT_NEAR(std::log(sum) - logits(0, kLabel), want, 1e-12) << name_of(config) << " cut at " << cut;
    }
  }
}

TEST(Layers, TakeNothingFromTheHeapAfterTheFirstSteps) {
  for (const ModelConfig& config : models())
    for (const bool recompute : {false, true}) {
      Moved<float> small(config);
      const Data data(config, kBatch, kTokens);
      Context context(1);
      Tape<float> tape(context), plain(context, Record::no);
      ModelState<float> state = small.model.start(1);
      for (int step = 0; step < 6; ++step) {
        const long before = tests::heap_allocations();
        small.parameters.zero_gradients();
        small.model.loss(tape, data.input(), {.recompute = recompute});
        tape.backward();
        tape.clear();
        (void)small.model.step(plain, {data.tokens.data(), 1}, state);
        const long taken = step > 2 ? tests::heap_allocations() - before : 0;
        EXPECT_EQ(taken, 0) << name_of(config) << " step " << step;
      }
    }
}

TEST(Layers, AreWatchedOneByOne) {
  const ModelConfig config = models()[2];
  Moved<float> small(config);
  const Data data(config, kBatch, kTokens);
  Context context(1);
  Tape<float> tape(context);
  EXPECT_EQ(small.model.first_not_finite(tape, data.input()), "");
  std::vector<std::size_t> taken;
  small.model.visit_blocks(tape, data.input(), [&](Index, Var<float>, auto others) { taken.push_back(others.size()); });
  EXPECT_EQ(taken, (std::vector<std::size_t>{0, 0, 0, 1, 0}));
  // Layer 3 is the first that sees it.
  small.parameters.find("layers.3.mixer.mix.bias").values()[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(small.model.first_not_finite(tape, data.input()), "layer 3 (rwkv7)");
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

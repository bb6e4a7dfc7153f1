#include "isomer/models/model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "isomer/models/cost.h"
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

struct KindCase {
  const char* name;
  ModelConfig config;
  Pass pass = {};
  std::vector<Index> lengths = {};
};

void PrintTo(const KindCase& one, std::ostream* os) { *os << one.name; }

std::vector<KindCase> kinds() {
  using enum ModelKind;
  ModelConfig untied = small_config(language), capped = small_config(language), bare = small_config(language),
              hybrid = small_config(language), mixed = small_config(language), gelu = small_config(encoder),
              placed = small_config(regression);
  untied.tied = false;
  untied.classes = 7;
  untied.dropout = 0.3;
  capped.logit_cap = 2;
  capped.norm = Norm::layer;
  bare.mlp = MlpKind::none;
  mixed.mlp = MlpKind::channel_mix;
  hybrid.layers = testing::hybrid_layers();
  hybrid.positions = placed.positions = true;
  gelu.mlp = MlpKind::gelu;
  gelu.mlp_factor = 2;
  return {{"language", small_config(language)},
          {"untied", untied, {.seed = 3, .step = 5, .dropout = true}},
          {"recomputed", untied, {.seed = 3, .step = 5, .dropout = true, .recompute = true}},
          {"capped", capped},
          {"bare", bare},
          {"channelmix", mixed, {.recompute = true}},
          {"hybrid", hybrid, {.window = 2, .recompute = true}},
          {"classifier", small_config(classifier)},
          {"padded", small_config(classifier), {}, {7, 3}},
          {"encoder", gelu, {}, {5, 7}},
          {"vision", small_config(vision)},
          {"frames", testing::frames_config()},
          {"regression", small_config(regression)},
          {"placed", placed},
          {"autoencoder", small_config(autoencoder)},
          {"table", small_config(table)}};
}

class EveryKind : public ::testing::TestWithParam<KindCase> {
 protected:
  Context context_{2};
};
INSTANTIATE_TEST_SUITE_P(Models, EveryKind, ::testing::ValuesIn(kinds()), [](const auto& one) { return one.param.name; });

template <class T>
std::vector<std::vector<T>> gradients(const Parameters<T>& parameters) {
  std::vector<std::vector<T>> all;
  for (const Parameter<T>& p : parameters.all()) all.emplace_back(p.gradient().begin(), p.gradient().end());
  return all;
}

TEST_P(EveryKind, HasTheGradientsOfItsLoss) {
  SmallModel<double> small(GetParam().config);
  Data data(GetParam().config, 2, 7);
  data.lengths = GetParam().lengths;
  Tape<double> tape(context_), plain(context_, Record::no);
  const auto value = [&] {
    const double loss = small.model.loss(plain, data.input(), GetParam().pass).loss;
    plain.clear();
    return loss;
  };
  const ModelResult result = small.model.loss(tape, data.input(), GetParam().pass);
  EXPECT_DOUBLE_EQ(result.loss, value());
  tape.backward();
  Rng rng(4);
  for (const Parameter<double>& p : small.parameters.all()) {
    if (!p.trained()) continue;
    ASSERT_EQ(p.gradient().size(), p.values().size()) << p.name();
    const std::vector<double> before(p.values().begin(), p.values().end());
    double want = 0, norm = 0, length = 0;
    std::vector<double> direction(before.size());
    for (double& d : direction) {
      d = rng.normal();
      length += d * d;
    }
    for (std::size_t i = 0; i < direction.size(); ++i) {
      direction[i] /= std::sqrt(length);
      want += direction[i] * p.gradient()[i];
      norm += p.gradient()[i] * p.gradient()[i];
    }
    const auto at = [&](double step) {
      for (std::size_t i = 0; i < before.size(); ++i) p.values()[i] = before[i] + step * direction[i];
      return value();
    };
    constexpr double kStep = 2e-6;
    const double slope = (at(kStep) - at(-kStep)) / (2 * kStep);
    (void)at(0);
    // Not relative to the slope alone, which may vanish along a direction.
    EXPECT_LE(std::abs(slope - want), 1e-6 * std::sqrt(norm) + 1e-9) << p.name();
  }
}

TEST_P(EveryKind, IsTheSameForEveryNumberOfThreads) {
  const auto train = [&](int threads) {
    Context context(threads);
    SmallModel<float> small(GetParam().config);
    Data data(GetParam().config, 2, 7);
    data.lengths = GetParam().lengths;
    Tape<float> tape(context);
    const double loss = small.model.loss(tape, data.input(), GetParam().pass).loss;
    tape.backward();
    return std::pair(loss, gradients(small.parameters));
  };
  const auto one = train(1), two = train(2);
  EXPECT_EQ(one.first, two.first);
  EXPECT_EQ(one.second, two.second);
}

TEST_P(EveryKind, AllocatesNothingAfterTheFirstSteps) {
  SmallModel<float> small(GetParam().config);
  Data data(GetParam().config, 2, 7);
  data.lengths = GetParam().lengths;
  // Which of several threads first meets a large task is left to chance, and so is when it takes memory for it.
  Context context(1);
  Tape<float> tape(context);
  long after_second = 0;
  for (int step = 0; step < 4; ++step) {
    small.parameters.zero_gradients();
    (void)small.model.loss(tape, data.input(), GetParam().pass);
    tape.backward();
    tape.clear();
    // The first call takes memory piece by piece, the second takes what it was as one.
    if (step == 1) after_second = tests::heap_allocations();
  }
  EXPECT_EQ(tests::heap_allocations(), after_second);
}

TEST_P(EveryKind, CostsWhatIsSaidOfIt) {
  SmallModel<float> small(GetParam().config);
  const ModelCost cost = cost_of(GetParam().config, 7);
  EXPECT_EQ(cost.parameters, small.parameters.trained_size());
  EXPECT_GT(cost.law_flops, 0);
  EXPECT_GT(cost.flops_per_token, cost.law_flops);
}

TEST_P(EveryKind, KeepsItsWeightsInAFile) {
  SmallModel<float> small(GetParam().config, 1), other(GetParam().config, 2);
  Data data(GetParam().config, 2, 7);
  Tape<float> tape(context_, Record::no);
  const double loss = small.model.loss(tape, data.input()).loss;
  EXPECT_NE(other.model.loss(tape, data.input()).loss, loss);
  const tests::TemporaryFolder folder;
  const std::string path = folder.path / "model.safetensors";
  small.parameters.save(path);
  other.parameters.load(path);
  EXPECT_EQ(other.model.loss(tape, data.input()).loss, loss);
}

TEST(Model, HasTheNamesOfItsParts) {
  SmallModel<float> tied(small_config(ModelKind::language));
  std::string names;
  for (const auto& p : tied.parameters.all()) names += p.name() + " ";
  EXPECT_EQ(names.find("embedding.weight layers.0.norm1.weight layers.0.mixer.q.weight"), 0) << names;
  for (const char* name : {"layers.0.norm2.weight", "layers.1.mlp.gate.weight", "layers.1.mlp.down.weight", "norm.weight"})
    EXPECT_NE(names.find(std::string(" ") + name + " "), std::string::npos) << names;
  EXPECT_EQ(names.find("head"), std::string::npos) << "the embedding is the head";
  SmallModel<float> vision(small_config(ModelKind::vision));
  for (const char* name : {"input.weight", "input.bias", "positions.weight", "head.weight", "head.bias"})
    EXPECT_EQ(vision.parameters.find(name).name(), name);
  ModelConfig orderless = small_config(ModelKind::vision);
  orderless.positions = false;
  SmallModel<float> bag(orderless);
  EXPECT_ANY_THROW((void)bag.parameters.find("positions.weight"));
}

TEST(Model, PredictsWhatHasTheLargestLogit) {
  const ModelConfig config = small_config(ModelKind::language);
  SmallModel<float> small(config);
  Data data(config, 2, 6);
  Context context(1);
  Tape<float> tape(context, Record::no);
  const ModelResult first = small.model.loss(tape, data.input());
  EXPECT_EQ(first.count, 8);
  ASSERT_EQ(first.predicted.size(), data.labels.size());
  for (std::size_t i = 0; i < data.labels.size(); ++i) EXPECT_EQ(first.predicted[i] < 0, data.labels[i] < 0);
  // With those as labels all are right.
  data.labels.assign(first.predicted.begin(), first.predicted.end());
  const ModelResult second = small.model.loss(tape, data.input());
  EXPECT_EQ(second.correct, 8);
  EXPECT_LT(second.loss, first.loss);
}

TEST(Model, TakesTheWindowOfAPassWhereThereIsOne) {
  ModelConfig config = small_config(ModelKind::language);
  config.layers = {{"sliding-window", {{"heads", "2"}, {"window", "6"}}}, {"softmax", {{"heads", "2"}}}};
  SmallModel<float> wide(config);
  config.layers[0].options["window"] = "2";
  SmallModel<float> narrow(config);
  const Data data(config, 2, 8);
  Context context(1);
  Tape<float> tape(context, Record::no);
  const double want = narrow.model.loss(tape, data.input()).loss;
  EXPECT_EQ(wide.model.loss(tape, data.input(), {.window = 2}).loss, want);
  EXPECT_NE(wide.model.loss(tape, data.input()).loss, want);
}

TEST(Model, HidesKeysOfAPassInEveryLayer) {
  ModelConfig config = small_config(ModelKind::vision);
  config.layers = {{"softmax", {{"heads", "2"}, {"causal", "false"}}}, {"inline", {{"heads", "2"}, {"causal", "false"}}}};
  SmallModel<float> small(config);
  const Data data(config, 2, 4);
  Context context(1);
  Tape<float> tape(context, Record::no);
  std::vector<std::uint8_t> hidden(16, 0);
  const double all = small.model.loss(tape, data.input()).loss;
  EXPECT_NEAR(small.model.loss(tape, data.input(), {.hidden = hidden}).loss, all, 1e-5);
  hidden[1] = 1;
  EXPECT_GT(std::abs(small.model.loss(tape, data.input(), {.hidden = hidden}).loss - all), 1e-4);
}

// In a table of nine rows with seven labels.
TEST(Model, RowsOfATableLookAtThoseThatAreKnownAlone) {
  const ModelConfig config = small_config(ModelKind::table);
  SmallModel<double> small(config);
  Data data(config, 1, 9);
  Context context(1);
  Tape<double> tape(context, Record::no);
  const auto logits = [&] {
    tape.clear();
    const Var<double> y = small.model.logits(tape, data.input()).logits;
    return std::vector<double>(y.value.data, y.value.data + y.value.size());
  };
  const std::vector<double> before = logits();
  const auto changed = [&] {
    const std::vector<double> after = logits();
    std::string rows;
    for (std::size_t t = 0; t < 9; ++t)
      rows += std::equal(after.begin() + 5 * t, after.begin() + 5 * (t + 1), before.begin() + 5 * t) ? '.' : 'x';
    return rows;
  };
  data.inputs[7 * 11] += 1;
  EXPECT_EQ(changed(), ".......x.");
  data.inputs[7 * 11] -= 1;
  data.known[2] += 1;
  EXPECT_EQ(changed(), "xxxxxxxxx");
}

TEST(Model, RefusesTablesThatItCannotRead) {
  ModelConfig config = small_config(ModelKind::table);
  Context context(1);
  Tape<float> tape(context, Record::no);
  const auto error = [&](const ModelConfig& of, const auto& change) {
    SmallModel<float> small(of);
    Data data(of, 1, 9);
    change(data);
    return error_of([&] { (void)small.model.logits(tape, data.input()); });
  };
  const auto nothing = [](Data&) {};
  EXPECT_EQ(error(config, nothing), "no error");
  EXPECT_EQ(error(config, [](Data& data) { data.known.clear(); }),
            "model: expected labels of the first rows, as many of each of 1 tables of 9, got 0");
  EXPECT_EQ(error(config, [](Data& data) { data.lengths = {5}; }), "model: expected tables without padding, got lengths");
  EXPECT_EQ(error(small_config(ModelKind::vision), [](Data& data) { data.known = {1}; }),
            "model: expected a table for labels that are known, got a model of kind vision");
  const char* mixers =
      "mixer: expected a mixer whose tokens see all others, at any distance and in one law, for rows that look at "
      "the first alone";
  config.layers = {{"gla", {{"heads", "2"}}}};
  EXPECT_EQ(error(config, nothing), mixers);
  config.layers = {{"sliding-window", {{"heads", "2"}, {"window", "4"}}}};
  EXPECT_EQ(error(config, nothing), mixers);
  config.layers = {{"inline", {{"heads", "2"}}}};
  EXPECT_NE(error(config, nothing), "no error");
}

TEST(Model, DropsOtherNumbersInEveryStep) {
  ModelConfig config = small_config(ModelKind::language);
  config.dropout = 0.2;
  SmallModel<float> small(config);
  const Data data(config, 2, 8);
  Context context(1);
  Tape<float> tape(context, Record::no);
  const auto loss = [&](const Pass& pass) { return small.model.loss(tape, data.input(), pass).loss; };
  EXPECT_EQ(loss({.seed = 1, .step = 2, .dropout = true}), loss({.seed = 1, .step = 2, .dropout = true}));
  EXPECT_NE(loss({.seed = 1, .step = 2, .dropout = true}), loss({.seed = 1, .step = 3, .dropout = true}));
  EXPECT_EQ(loss({.seed = 1, .step = 2}), loss({.seed = 1, .step = 3}));
}

TEST(Model, SaysWhereAValueIsFirstNotFinite) {
  const ModelConfig config = small_config(ModelKind::language);
  SmallModel<float> small(config);
  const Data data(config, 2, 8);
  Context context(1);
  Tape<float> tape(context);
  EXPECT_EQ(small.model.first_not_finite(tape, data.input()), "");
  const auto spoiled = [&](const char* name) {
    float& x = small.parameters.find(name).values()[0];
    const float before = std::exchange(x, std::numeric_limits<float>::infinity());
    const std::string place = small.model.first_not_finite(tape, data.input());
    x = before;
    return place;
  };
  EXPECT_EQ(spoiled("layers.1.mixer.v.weight"), "layer 1 (gla)");
  EXPECT_EQ(spoiled("layers.0.mlp.down.weight"), "layer 0 (softmax)");
  EXPECT_EQ(spoiled("norm.weight"), "the output");
}

TEST(Model, SaysWhereAGradientIsFirstNotFinite) {
  ModelConfig config = small_config(ModelKind::language);
  config.tied = false;
  SmallModel<float> small(config);
  const Data data(config, 2, 8);
  Context context(1);
  Tape<float> tape(context);
  small.model.loss(tape, data.input());
  tape.backward();
  EXPECT_EQ(small.model.first_gradient_not_finite(small.parameters), "");
  // Each comes later in the backward pass than the one after it, which hides it.
  for (const auto& [name, place] :
       std::vector<std::pair<const char*, const char*>>{{"embedding.weight", "the embedding"},
                                                        {"layers.0.norm1.weight", "layer 0 (softmax)"},
                                                        {"layers.1.mixer.v.weight", "layer 1 (gla)"},
                                                        {"head.weight", "the output"}}) {
    small.parameters.find(name).gradient()[0] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(small.model.first_gradient_not_finite(small.parameters), place);
  }
}

TEST(Model, RefusesInputsOfAnotherSize) {
  const ModelConfig config = small_config(ModelKind::language);
  SmallModel<float> small(config);
  Data data(config, 2, 4);
  Context context(1);
  Tape<float> tape(context, Record::no);
  const auto error = [&](const ModelInput& in) { return error_of([&] { (void)small.model.loss(tape, in); }); };
  ModelInput in = data.input();
  in.B = 3;
  EXPECT_EQ(error(in), "model: expected 12 tokens, got 8");
  in = data.input();
  in.labels = in.labels.first(2);
  EXPECT_EQ(error(in), "model: expected 8 labels, got 2");
  in = data.input();
  data.lengths = {4, 5};
  in.lengths = data.lengths;
  EXPECT_EQ(error(in), "model: expected lengths from 1 to 4, got 5");
  EXPECT_EQ(error({}), "model: expected at least one token, got 0 sequences of 0");
}

// A changed line here belongs into the CHANGELOG: a run that is repeated starts elsewhere.
TEST(Model, StartsWithWhatASeedAlwaysGave) {
  const auto start = [](const ModelConfig& config) {
    Parameters<float> parameters;
    const Model<float> model(config, parameters);
    initialise(parameters, 7);
    return parameters.fingerprint();
  };
  EXPECT_EQ(start(testing::hybrid_config(9)), "bbc0aa8385f854d6");
  EXPECT_EQ(start(small_config(ModelKind::vision)), "7ddd23b7044b6f37");
  EXPECT_EQ(start(small_config(ModelKind::autoencoder)), "8b6144280fe393d9");
  EXPECT_EQ(start(small_config(ModelKind::table)), "8ebfcea11f4d3f3c");
}

}  // namespace
}  // namespace isomer

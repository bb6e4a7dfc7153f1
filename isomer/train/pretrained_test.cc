// Recipes on models that are there already, their conversion, and distillation.
#include "isomer/models/pretrained.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "isomer/io/text.h"
#include "isomer/train/convert.h"
#include "isomer/train/distil.h"
#include "isomer/train/start.h"
#include "isomer/train/trainer.h"
#include "isomer/train/transfer.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
namespace fs = std::filesystem;
using Fate = StartedWeight::Fate;

std::string golden(const std::string& name) { return (fs::path(ISOMER_SOURCE_DIR) / "tests/goldens/foreign" / name).string(); }

const char* const kLanguage = R"([task]
name = "mqar"
vocabulary = 18
length = 16
pairs = 2
[train]
steps = 10
batch = 8
lr = 1e-3
)";

Recipe language(const std::string& name, const Overrides& more = {}) {
  Overrides all{"model.from=" + golden(name)};
  all.insert(all.end(), more.begin(), more.end());
  return parse_recipe(parse_toml(kLanguage, "language.toml"), all);
}

std::unique_ptr<Session> opened(const Recipe& recipe, Context& context) {
  auto session = std::make_unique<Session>(recipe, context);
  (void)start_from(session->parameters(), start_of(recipe));
  return session;
}

TEST(PretrainedRecipe, HasTheModelAndTheWeightsOfTheFolder) {
  for (const char* name : {"llama", "gemma3", "mamba", "gpt2", "qwen3-next"}) {
    const Recipe recipe = language(name);
    Context context(1);
    Session session(recipe, context);
    EXPECT_EQ(to_json(session.config()), to_json(describe_model(golden(name)))) << name;
    const StartReport report = start_from(session.parameters(), start_of(recipe));
    EXPECT_EQ(report.count(Fate::taken), Index(report.weights.size())) << name;
    EXPECT_EQ(session.parameters().fingerprint(), load_model(golden(name))->parameters.fingerprint()) << name;
    // What a run's folder keeps is read as the same.
    const Recipe again = parse_recipe(parse_toml(to_toml(recipe), "recipe.toml"));
    EXPECT_TRUE(changes(recipe, again).empty()) << name;
    EXPECT_EQ(to_json(model_of(again, session.task().shape())), to_json(session.config())) << name;
    EXPECT_TRUE(changes(resolved(recipe), resolved(again)).empty()) << name;
  }
}

TEST(PretrainedRecipe, SaysWhatDoesNotGoWithIt) {
  const auto error = [](const char* name, const Overrides& more) {
    return tests::error_of([&] {
      const Recipe recipe = language(name, more);
      (void)model_of(recipe, task_of(recipe)->shape());
    });
  };
  EXPECT_EQ(error("llama", {"model.width=8"}), "--set: expected only layers and dropout beside model.from, got model.width");
  EXPECT_EQ(error("llama", {"model.layers=luna"}), "no error");
  EXPECT_NE(error("llama", {"model.layers=luna*3"}).find("expected 2 model.layers, which is what the model in "),
            std::string::npos);
  EXPECT_NE(error("llama", {"task.vocabulary=64"}).find("expected at most 19 different tokens"), std::string::npos);
  EXPECT_NE(error("bert", {}).find("expected a task for models of the kind masked"), std::string::npos);
  EXPECT_NE(error("llama", {"mixer.luna.features=4"}).find("options for luna, which no layer is"), std::string::npos);
  EXPECT_NE(error("nowhere", {}).find("expected the folder of a run or of a model"), std::string::npos);
}

TEST(PretrainedRecipe, TrainsAndGoesOn) {
  const tests::TemporaryFolder folder;
  const Recipe recipe = language("llama");
  Context context(1);
  const std::atomic<bool> stop = false;
  const auto session = opened(recipe, context);
  const double before = session->evaluate({.examples = 64}).loss;
  const RunFolder run = RunFolder::create((folder.path / "run").string(), to_toml(recipe));
  (void)train(*session, run, {}, stop);
  EXPECT_LT(session->evaluate({.examples = 64}).loss, before);
  const auto again = open_run(run.path(), context);
  EXPECT_EQ(again->evaluate({.examples = 64}).loss, session->evaluate({.examples = 64}).loss);
}

struct Converted {
  Context context{2};
  std::unique_ptr<Session> from;
  Conversion plan;
  std::unique_ptr<Session> to;
  std::vector<ConvertedParameter> fates;

  Converted(const Recipe& recipe, const ConversionRequest& request) : from(opened(recipe, context)) {
    plan = plan_conversion(*from, request);
    to = std::make_unique<Session>(plan.recipe, plan.model, context);
    fates = take_weights(*from, *to, plan.layers);
  }
  [[nodiscard]] Index count(ConvertedParameter::Fate fate) const {
    return std::ranges::count(fates, fate, &ConvertedParameter::fate);
  }
};

TEST(PretrainedConversion, KeepsProjectionsAndRopeAndRepeatsGroups) {
  for (const char* mixer : {"luna", "hedgehog", "t2r", "linear-elu", "performer", "cosformer"}) {
    const Converted c(language("llama"), {.mixer = mixer});
    EXPECT_EQ(c.count(ConvertedParameter::Fate::kept), 4) << mixer;      // q and o of two layers
    EXPECT_EQ(c.count(ConvertedParameter::Fate::repeated), 4) << mixer;  // k and v
    EXPECT_EQ(c.count(ConvertedParameter::Fate::dropped), 0) << mixer;
    EXPECT_EQ(c.plan.recipe.mixers.at(mixer).at("rope_base"), "500") << mixer;
    EXPECT_TRUE(c.plan.dropped.empty()) << c.plan.dropped.front();
    // The recipe of the new run gives the same model again.
    const Recipe again = parse_recipe(parse_toml(to_toml(c.plan.recipe), "new.toml"));
    EXPECT_EQ(to_json(model_of(again, c.from->task().shape())), to_json(c.plan.model)) << mixer;
  }
}

TEST(PretrainedConversion, LeavesLayersAsTheyAreAndSaysWhatIsDropped) {
  // Layer 0 of this golden has a window; layer 1 may become something else by itself.
  const Converted one(language("mistral"), {.mixer = "hedgehog", .layers = {1}});
  EXPECT_EQ(to_json(one.plan.model).find("hedgehog") != std::string::npos, true);
  EXPECT_EQ(one.plan.model.layers[0].preset, one.from->config().layers[0].preset);
  EXPECT_EQ(one.plan.model.layers[0].options, one.from->config().layers[0].options);
  const Converted qwen(language("qwen3"), {.mixer = "hedgehog"});
  EXPECT_NE(std::ranges::find(qwen.plan.dropped, "qk_norm=head"), qwen.plan.dropped.end());
  EXPECT_GT(qwen.count(ConvertedParameter::Fate::dropped), 0);
  // The same mixer changes nothing, whatever options it has.
  Converted same(language("qwen3"), {.mixer = "softmax"});
  EXPECT_EQ(to_json(same.plan.model), to_json(same.from->config()));
  EXPECT_EQ(same.to->parameters().fingerprint(), same.from->parameters().fingerprint());
  EXPECT_NEAR(distance(*same.from, *same.to, 8, same.context), 0, 1e-12);
}

TEST(PretrainedConversion, LearnsFromTheOldModel) {
  Converted c(language("llama"), {.mixer = "hedgehog"});
  const double at_once = distance(*c.from, *c.to, 64, c.context);
  EXPECT_GT(at_once, 0);
  const DistilReport report = distil(*c.from, *c.to, {.steps = 60, .lr = 1e-2, .looks = 6}, c.context);
  EXPECT_EQ(report.before, at_once);
  EXPECT_EQ(report.curve.size(), 7U);
  EXPECT_LT(report.after, 0.5 * report.before);
  EXPECT_EQ(report.after, distance(*c.from, *c.to, 64, c.context));
}

TEST(Distillation, IsTheSameForAnyNumberOfThreads) {
  const auto learned = [](int threads) {
    Context context(threads);
    const auto from = opened(language("llama"), context);
    const Conversion plan = plan_conversion(*from, {.mixer = "luna"});
    Session to(plan.recipe, plan.model, context);
    (void)take_weights(*from, to, plan.layers);
    (void)distil(*from, to, {.steps = 3, .lr = 1e-2}, context);
    return to.parameters().fingerprint();
  };
  EXPECT_EQ(learned(1), learned(3));
}

const char* const kTables = R"([task]
name = "tables"
rows = 24
known = 16
features = 6
columns = 6
classes = 4
[train]
steps = 60
batch = 4
)";

TEST(PretrainedTables, LearnFromRowsThatAreKnownAndAnswerForTheOthers) {
  const Recipe recipe = parse_recipe(parse_toml(kTables, "tables.toml"), {"model.from=" + golden("tabpfn")});
  for (const char* mixer : {"hedgehog", "luna", "performer"}) {
    Converted c(recipe, {.mixer = mixer});
    EXPECT_EQ(c.from->parameters().fingerprint(), load_model(golden("tabpfn"))->parameters.fingerprint());
    const double at_once = distance(*c.from, *c.to, 32, c.context);
    EXPECT_GT(at_once, 0) << mixer;
    const bool learns = can_transfer(*c.to, c.fates);
    EXPECT_EQ(learns, std::string(mixer) != "performer");
    if (learns)
      for (const TransferReport& r : transfer(*c.from, *c.to, c.fates, {.steps = 60}, c.context)) {
        EXPECT_TRUE(r.weights) << mixer;
        EXPECT_LT(r.after, r.before) << mixer;
      }
    const DistilReport report = distil(*c.from, *c.to, {.steps = 60, .lr = 1e-3}, c.context);
    EXPECT_LT(report.after, 0.7 * report.before) << mixer;
    // Train and evaluate as any task does.
    const double before = c.to->step().loss;
    EXPECT_TRUE(std::isfinite(before) && c.to->evaluate({.examples = 8}).value >= 0);
  }
}

// Of the rows of a table those that are known are not compared: a plain sum in double over the others.
TEST(Distillation, ComparesRowsThatAreAskedFor) {
  Converted c(parse_recipe(parse_toml(kTables, "tables.toml"), {"model.from=" + golden("tabpfn")}), {.mixer = "hedgehog"});
  Batch batch;
  c.to->task().fill(Split::test, 0, 4, batch);
  Tape<float> theirs(c.context, Record::no), own(c.context, Record::no);
  const Var<float> a = c.from->model().logits(theirs, input_of(batch)).logits,
                   b = c.to->model().logits(own, input_of(batch)).logits;
  double sum = 0;
  for (Index i = 0; i < 4; ++i)
    for (Index t = 16; t < 24; ++t) {
      double za = 0, zb = 0;
      for (Index v = 0; v < 4; ++v) za += std::exp(double(a.value(i, t, 0, v))), zb += std::exp(double(b.value(i, t, 0, v)));
      for (Index v = 0; v < 4; ++v) {
        const double la = double(a.value(i, t, 0, v)) - std::log(za), lb = double(b.value(i, t, 0, v)) - std::log(zb);
        sum += std::exp(la) * (la - lb);
      }
    }
  EXPECT_NEAR(distance(*c.from, *c.to, 4, c.context), sum / 32, 1e-6);
}

TEST(Distillation, IsTheDivergenceOfWhatModelsThink) {
  // Against a plain sum in double.
  Converted c(language("llama"), {.mixer = "hedgehog"});
  Batch batch;
  c.to->task().fill(Split::test, 0, 8, batch);
  Tape<float> theirs(c.context, Record::no), own(c.context, Record::no);
  const Var<float> a = c.from->model().logits(theirs, input_of(batch)).logits,
                   b = c.to->model().logits(own, input_of(batch)).logits;
  const Index V = a.dim(3), rows = a.value.size() / V;
  double sum = 0;
  for (Index r = 0; r < rows; ++r) {
    double za = 0, zb = 0;
    for (Index v = 0; v < V; ++v)
      za += std::exp(double(a.value.data[r * V + v])), zb += std::exp(double(b.value.data[r * V + v]));
    for (Index v = 0; v < V; ++v) {
      const double la = double(a.value.data[r * V + v]) - std::log(za), lb = double(b.value.data[r * V + v]) - std::log(zb);
      sum += std::exp(la) * (la - lb);
    }
  }
  EXPECT_NEAR(distance(*c.from, *c.to, 8, c.context), sum / double(rows), 1e-6);
}

}  // namespace
}  // namespace isomer

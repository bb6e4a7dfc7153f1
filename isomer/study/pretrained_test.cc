#include "isomer/study/pretrained.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "isomer/base/error.h"
#include "isomer/io/text.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer::study {
namespace {
namespace fs = std::filesystem;

std::string golden(const std::string& name) { return (fs::path(ISOMER_SOURCE_DIR) / "tests/goldens/foreign" / name).string(); }

const char* const kRecipe = R"([task]
name = "mqar"
vocabulary = 18
length = 16
pairs = 2
[train]
steps = 60
batch = 8
lr = 2e-3
)";
Recipe recipe_with(const Overrides& overrides) { return parse_recipe(parse_toml(kRecipe, "claim.toml"), overrides); }

TEST(PretrainedClaims, SayWhatFetchesWhatIsMissing) {
  const std::string error = tests::error_of([] { (void)model_folder("no-such-model"); });
  EXPECT_TRUE(error.ends_with("/isomer/models/no-such-model, got no such folder: tools/models no-such-model fetches it"))
      << error;
}

Trial trial_of(const Recipe& recipe, Context& context) {
  return {.name = "mqar",
          .teacher = pretrained(recipe, golden("llama"), {}, Head::of_task, context),
          .score =
              [](Session& session, Trial::Part part) {
                return session.evaluate({.examples = 8, .first = part == Trial::Part::test ? 8 : 0}).loss;
              },
          .lower_is_better = true,
          .transfer = 5,
          .looks = 6};
}

TEST(PretrainedClaims, ConvertToOneMixerOrToSeveral) {
  Context context(1);
  for (const Overrides& layers :
       {Overrides{"model.layers=luna"}, Overrides{"model.layers=hedgehog,sliding-window", "mixer.sliding-window.window=4"},
        Overrides{"model.layers=softmax,linear-elu"}}) {
    const Recipe recipe = recipe_with(layers);
    const auto teacher = pretrained(recipe, golden("llama"), {}, Head::of_task, context);
    EXPECT_EQ(teacher->parameters().fingerprint(), load_model(golden("llama"))->parameters.fingerprint());
    const ConvertedModel to = convert_as(recipe, *teacher, context);
    const std::vector<std::string> names = layers_of(recipe.model);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(to.session->config().layers[i].preset, names[std::min(i, names.size() - 1)]);
    EXPECT_GT(distance(*teacher, *to.session, 16, context), 0);
  }
}

TEST(PretrainedClaims, TrialsLearnFromTheTeacherOrFromLabels) {
  Context context(1);
  for (const Trial::From from : {Trial::From::teacher, Trial::From::labels}) {
    const Recipe recipe = recipe_with({"model.layers=hedgehog"});
    Trial trial = trial_of(recipe, context);
    trial.learns = from;
    trial.more["layers"] = [](Session& session) { return double(session.config().layers.size()); };
    std::vector<double> shares;
    const CellResult result = run_trial(trial, recipe, context, [&](double share) {
      shares.push_back(share);
      return true;
    });
    EXPECT_EQ(shares.size(), 60U);
    EXPECT_EQ(shares.back(), 1);
    ASSERT_EQ(result.curve.size(), 7U) << "the end of the transfer, and six looks";
    EXPECT_EQ(result.curve.back().step, 60);
    EXPECT_EQ(result.curve.back().value, result.validation) << "here both are of the same examples";
    EXPECT_NE(result.value, result.validation);
    EXPECT_NE(result.numbers.at("at once"), result.curve.front().value) << "something was transferred";
    EXPECT_EQ(result.numbers.at("softmax, looked at"), trial.score(*trial.teacher, Trial::Part::look));
    EXPECT_EQ(result.numbers.at("softmax"), trial.score(*trial.teacher, Trial::Part::test));
    EXPECT_EQ(result.numbers.at("layers"), 2);
    EXPECT_EQ(result.numbers.at("softmax, layers"), 2);
    if (from == Trial::From::labels) {
      EXPECT_LT(result.validation, result.curve.front().value);
    }
  }
}

TEST(PretrainedClaims, TheLearningRateIsThatOfTheRecipe) {
  Context context(1);
  std::vector<double> values;
  for (const char* rate : {"train.lr=1e-5", "train.lr=1e-2"}) {
    const Recipe recipe = recipe_with({"model.layers=linear-elu", rate});
    Trial trial = trial_of(recipe, context);
    trial.learns = Trial::From::labels;
    values.push_back(run_trial(trial, recipe, context, {}).value);
  }
  EXPECT_NE(values[0], values[1]);
}

TEST(PretrainedClaims, WhatIsNotFiniteHasDiverged) {
  Context context(1);
  const Recipe recipe = recipe_with({"model.layers=linear-elu"});
  Trial trial = trial_of(recipe, context);
  const Session* const teacher = trial.teacher.get();
  trial.name = "diverges";
  trial.score = [teacher](Session& session, Trial::Part) { return &session == teacher ? 1 : std::nan(""); };
  const CellResult result = run_trial(trial, recipe, context, {});
  EXPECT_TRUE(result.diverged);
  EXPECT_EQ(result.score(), -std::numeric_limits<double>::infinity());
}

TEST(PretrainedClaims, StopWhenAsked) {
  Context context(1);
  const Recipe recipe = recipe_with({"model.layers=hedgehog"});
  for (const Trial::From from : {Trial::From::teacher, Trial::From::labels}) {
    Trial trial = trial_of(recipe, context);
    trial.learns = from;
    EXPECT_EQ(tests::error_of([&] { (void)run_trial(trial, recipe, context, [](double) { return false; }); }), "stopped");
  }
}

int kept_in(const fs::path& folder, const std::string& start) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) count += entry.path().filename().string().starts_with(start) ? 1 : 0;
  return count;
}

TEST(PretrainedClaims, TuneAgainWithOtherSettings) {
  Context context(1);
  const tests::TemporaryFolder folder;
  fs::copy(golden("llama"), folder.path, fs::copy_options::recursive);
  Index steps = 0;
  const auto tune = [&](const Overrides& overrides, const Tuning& tuning) {
    steps = 0;
    return tuned_once(recipe_with(overrides), folder.path.string(), {}, "tuned", tuning, context,
                      [&](double) { return ++steps, true; });
  };
  const Tuning tuning{.steps = 2, .rate = 1e-2};
  const auto first = tune({}, tuning);
  EXPECT_EQ(steps, 2);
  // What a cell has of its own is no setting of the tuning, which is one for all cells.
  for (const Overrides& own : {Overrides{"train.seed=2", "task.seed=2"}, Overrides{"train.lr=0.5"}, Overrides{"train.steps=7"},
                               Overrides{"model.layers=luna"}}) {
    const auto again = tune(own, tuning);
    EXPECT_EQ(steps, 0) << own[0];
    EXPECT_EQ(again->parameters().fingerprint(), first->parameters().fingerprint());
  }
  int kept = 1;
  EXPECT_EQ(kept_in(folder.path, "study-tuned-"), kept);
  for (const auto& [own, how] : std::vector<std::pair<Overrides, Tuning>>{{{}, {.steps = 3, .rate = 1e-2}},
                                                                          {{}, {.steps = 2, .rate = 2e-2}},
                                                                          {{}, {.steps = 2, .rate = 1e-2, .freeze = "layers."}},
                                                                          {{"train.batch=4"}, tuning},
                                                                          {{"task.pairs=1"}, tuning}}) {
    (void)tune(own, how);
    EXPECT_EQ(steps, how.steps) << kept;
    EXPECT_EQ(kept_in(folder.path, "study-tuned-"), ++kept);
  }
}

TEST(PretrainedClaims, KeepWhatIsMadeOfOtherSettingsApart) {
  const tests::TemporaryFolder folder;
  Keepsake what{.folder = folder.path.string(), .name = "a", .extension = ".txt", .made_of = "count 1"};
  const auto make = [&](const std::string& text) {
    return read_text(made_once(what, Isa::scalar, [&](const std::string& path) { write_text(path, text); }));
  };
  EXPECT_EQ(make("first"), "first");
  EXPECT_EQ(make("second"), "first");
  EXPECT_TRUE(path_of(what, Isa::scalar).starts_with((folder.path / "study-a-").string()));
  EXPECT_TRUE(path_of(what, Isa::scalar).ends_with(".txt"));
  EXPECT_NE(path_of(what, Isa::scalar), path_of(what, Isa::avx2)) << "numbers depend on it";
  what.made_of = "count 2";
  EXPECT_EQ(make("second"), "second");
}

TEST(PretrainedClaims, TuneOnceAndKeepTheWeights) {
  Context context(1);
  const tests::TemporaryFolder folder;
  fs::copy(golden("llama"), folder.path, fs::copy_options::recursive);
  const Recipe recipe = recipe_with({});
  const Tuning tuning{.steps = 3, .rate = 1e-2, .freeze = "layers."};
  Index steps = 0;
  const auto tune = [&](bool go_on) {
    return tuned_once(recipe, folder.path.string(), {}, "tuned", tuning, context, [&](double) { return ++steps, go_on; });
  };
  EXPECT_EQ(tests::error_of([&] { (void)tune(false); }), "stopped");
  EXPECT_EQ(kept_in(folder.path, "study-tuned-"), 0);
  steps = 0;
  const auto first = tune(true);
  EXPECT_EQ(steps, tuning.steps);
  const auto second = tune(true);
  EXPECT_EQ(steps, tuning.steps) << "they were kept";
  EXPECT_EQ(first->parameters().fingerprint(), second->parameters().fingerprint());
  const auto before = pretrained(recipe, golden("llama"), {}, Head::of_task, context);
  EXPECT_NE(first->parameters().fingerprint(), before->parameters().fingerprint());
  const Tensors now = first->parameters().tensors(), then = before->parameters().tensors();
  Index frozen = 0;
  for (const auto& [name, tensor] : now)
    if (name.starts_with("layers.")) {
      ++frozen;
      EXPECT_TRUE(std::equal(tensor.bytes(), tensor.bytes() + tensor.size() * bytes_of(tensor.type()), then.at(name).bytes()))
          << name;
    }
  EXPECT_GT(frozen, 0);
}

TEST(PretrainedClaims, KeepAnEncoderAsItIs) {
  Context context(1);
  const auto own = pretrained(recipe_with({}), golden("bert-encoder"), {}, Head::own, context);
  EXPECT_EQ(own->config().kind, ModelKind::embedding);
  EXPECT_EQ(own->parameters().fingerprint(), load_model(golden("bert-encoder"))->parameters.fingerprint());
}

TEST(PretrainedClaims, KeepAModelOfTablesAsItIs) {
  Context context(1);
  const Recipe recipe = parse_recipe(
      parse_toml("[task]\nname = \"tables\"\nrows = 12\nknown = 8\nfeatures = 6\ncolumns = 6\nclasses = 4\n", "claim.toml"),
      {"model.layers=luna"});
  const auto own = pretrained(recipe, golden("tabpfn"), {}, Head::own, context);
  EXPECT_EQ(own->config().kind, ModelKind::table);
  EXPECT_EQ(own->parameters().fingerprint(), load_model(golden("tabpfn"))->parameters.fingerprint());
  const ConvertedModel to = convert_as(recipe, *own, context);
  EXPECT_GT(distance(*own, *to.session, 4, context), 0);
}

TEST(Cells, RunTheirProcedure) {
  const Procedure procedure{.name = "p", .run = [](const Recipe& recipe, Context&, const CellProgress&) {
                              return CellResult{.value = double(recipe.train.steps), .steps = recipe.train.steps};
                            }};
  const Cell cell{.recipe = kRecipe, .overrides = {"model.layers=gla"}, .procedure = &procedure};
  Context context(1);
  const CellResult result = run_cell(cell, context);
  EXPECT_EQ(result.value, 60);
  EXPECT_EQ(result.key, key_of(cell, context.isa()));
  Cell plain = cell;
  plain.procedure = nullptr;
  EXPECT_NE(key_of(plain, context.isa()), result.key);
}

}  // namespace
}  // namespace isomer::study

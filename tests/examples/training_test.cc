// As examples_test.cc, for recipes, runs and the loop that trains them.
#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "isomer/base/error.h"
#include "isomer/io/text.h"
#include "isomer/models/logits.h"
#include "isomer/models/model_dsf.h"
#include "isomer/tasks/score.h"
#include "isomer/train/child_process.h"
#include "isomer/train/grid.h"
#include "isomer/train/recipe_model.h"
#include "isomer/train/run_summary.h"
#include "isomer/train/start.h"
#include "isomer/train/stopping.h"
#include "isomer/train/tensorboard.h"
#include "isomer/train/testing.h"
#include "isomer/train/trainer.h"
#include "isomer/train/transfer.h"
#include "tests/examples/surroundings.h"

namespace isomer {
namespace {

/// In a folder of its own.
class TrainingExamples : public ::testing::Test {
 protected:
  /// A run without steps.
  void make(const std::string& path, Recipe made) {
    Session session(made, context);
    RunFolder::create(path, to_toml(made)).save(session.checkpoint(), 1);
  }
  /// A run of text, whose folder is that of a model.
  void make_text() {
    write_text("corpus", std::string(400, 'x'));
    Recipe text;
    text.task = "text";
    text.task_settings = {{"path", "corpus"}, {"length", "8"}};
    text.model.width = 8;
    text.mixers["softmax"] = {{"heads", "1"}};
    make("runs/text", text);
  }

  examples::InNewFolder here;
  Context context{1};
  Recipe recipe = tests::small_recipe();
};

TEST_F(TrainingExamples, Scores) {
  Batch batch;
  batch.B = 2, batch.T = 2;
  batch.labels = {1, kIgnored, 2, 3};
  const std::vector<std::int64_t> predicted{1, 0, 2, 0};
  // from isomer/tasks/score.h
  Score score;
  score.add(batch, predicted);  // the class with the largest logit for every label
  const double value = score.value(Metric::example_accuracy);
  // end
  EXPECT_EQ(value, 0.75);
}

TEST_F(TrainingExamples, Children) {
  const std::string program = "/bin/echo";
  // from isomer/train/child_process.h
  Child child = Child::start(program, {"train", "recipe.toml"}, "log.txt");  // "/usr/bin/isomer"
  while (!child.ended()) std::this_thread::yield();
  if (child.status() != 0) throw Error("it failed: see log.txt");
  // end
  EXPECT_EQ(read_text("log.txt"), "train recipe.toml\n");
}

TEST_F(TrainingExamples, Grids) {
  std::filesystem::create_directory("recipes");
  write_text("recipes/mqar.toml", read_text(std::string(ISOMER_SOURCE_DIR) + "/recipes/mqar.toml"));
  // from isomer/train/grid.h
  const std::vector<GridAxis> axes = parse_grid({"mixer=softmax,gla", "lr=1e-3,3e-3"});
  const std::vector<GridPoint> points = grid_of(axes, "recipes/mqar.toml", {"train.steps=100"});  // 4 of them
  // end
  ASSERT_EQ(points.size(), 4U);
  EXPECT_EQ(points[3].name, "mixer=gla,lr=3e-3");
  EXPECT_EQ(points[3].recipe.train.steps, 100);
}

TEST_F(TrainingExamples, Metrics) {
  std::filesystem::create_directories("runs/a");
  const examples::Printed printed;
  // from isomer/train/metrics.h
  const MetricsFile file("runs/a/metrics.jsonl");
  file.append(StepLine{.step = 1, .loss = 4.2});
  for (const MetricsLine& line : file.read())
    if (const auto* step = std::get_if<StepLine>(&line)) std::cout << step->loss;
  // end
  EXPECT_EQ(printed.text(), "4.2");
}

TEST_F(TrainingExamples, RecipesOfModels) {
  // from isomer/train/recipe_model.h
  const std::unique_ptr<Task> task = task_of(recipe);
  const ModelConfig config = model_of(recipe, task->shape());
  // end
  EXPECT_EQ(config.width, 16);
  EXPECT_EQ(config.vocabulary, 64);
}

TEST_F(TrainingExamples, RunFolders) {
  const Index keep = 2;
  const Checkpoint checkpoint = Session(recipe, context).checkpoint();
  // from isomer/train/run_folder.h
  RunFolder folder = RunFolder::create("runs/a", to_toml(recipe));
  folder.metrics().append(StepLine{.step = 1, .loss = 4.2});
  folder.save(checkpoint, keep);
  const Checkpoint last = folder.load_latest();  // to resume: metrics after its step are dropped
  // end
  EXPECT_EQ(last.step, 0);
  const MetricsLine line = StepLine{.step = 2, .loss = 4};
  // from isomer/train/tensorboard.h
  Tensorboard board(folder);  // with all lines that are there: a resumed run has no step twice, and none is missing
  board.add(line);            // of metrics.jsonl
  // end
  EXPECT_FALSE(std::filesystem::is_empty("runs/a/tensorboard"));
}

TEST_F(TrainingExamples, Stopping) {
  const Metric metric = Metric::token_accuracy;
  const double value = 0.9;
  recipe.train.stop_at = 0.8;
  // from isomer/train/stopping.h
  Stopping stopping(recipe.train, lower_is_better(metric));
  const bool end = stopping.enough(value);  // once for each evaluation, in order
  // end
  EXPECT_TRUE(end);
}

TEST_F(TrainingExamples, Trainer) {
  const std::atomic<bool> stop = false;
  {
    // from isomer/train/trainer.h
    Session session(recipe, context);
    RunFolder folder = RunFolder::create("runs/a", to_toml(recipe));
    const TrainOutcome outcome = train(session, folder, {}, stop);  // stop: set it to end after the current step
    // end
    EXPECT_EQ(outcome.steps, 10);
  }
  const examples::Printed printed;
  // from isomer/train/run_summary.h
  for (const std::string& path : runs_below("runs")) std::cout << summary_of(path).value.value_or(0);
  // end
  EXPECT_FALSE(printed.text().empty());
}

TEST_F(TrainingExamples, Starts) {
  make_text();
  Session session(read_recipe("runs/text/recipe.toml"), context);
  const RunFolder folder = RunFolder::create("runs/b", read_text("runs/text/recipe.toml"));
  // from isomer/train/start.h
  const StartReport report = start_from(session.parameters(), "runs/text");  // a run or a model's folder
  write_text(folder.start_path(), to_json(report));
  // end
  EXPECT_EQ(report.count(StartedWeight::Fate::missing), 0);
  EXPECT_GT(report.count(StartedWeight::Fate::taken), 3);
}

TEST_F(TrainingExamples, Conversions) {
  recipe.model.layers = {"softmax"};
  recipe.mixers = {{"softmax", {{"heads", "2"}}}};
  make("runs/a", recipe);
  const auto transferred = [this](Session& from, Session& to, const std::vector<Index>& layers) {
    // from isomer/train/transfer.h
    std::vector<ConvertedParameter> fates = take_weights(from, to, layers);   // convert.h
    const auto reports = transfer(from, to, fates, {.steps = 500}, context);  // each has before and after
    // end
    return reports;
  };
  // from isomer/train/convert.h
  const std::unique_ptr<Session> from = open_run("runs/a", context);
  const Conversion plan = plan_conversion(*from, {.mixer = "luna", .overrides = {"train.steps=500"}});
  Session to(plan.recipe, plan.model, context);
  const std::vector<ConvertedParameter> fates = take_weights(*from, to, plan.layers);
  // end
  EXPECT_FALSE(fates.empty());
  const std::vector<TransferReport> reports = transferred(*from, to, plan.layers);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_LT(reports[0].after, reports[0].before);
}

TEST_F(TrainingExamples, ModelsOfRuns) {
  make_text();
  // from isomer/models/model_files.h
  const ModelFiles files = read_model_files(find_model("runs/text"));
  // end
  EXPECT_FALSE(files.weights.empty());

  Tensors tensors;
  const Tensor& numbers = tensors.emplace("tokens", Tensor(Type::i64, {1, 3})).first->second;
  std::fill_n(numbers.data<std::int64_t>(), 3, 7);
  write_safetensors("in.safetensors", tensors);
  // from isomer/models/logits.h
  const std::unique_ptr<LoadedModel> model = load_model("runs/text");  // model_folder.h
  const Tensors out = logits_of(*model, read_safetensors("in.safetensors"), {}, context);
  // end
  EXPECT_EQ(out.at("logits").shape(), (std::vector<Index>{1, 3, 256}));

  const LoadedModel* const loaded = model.get();
  const std::vector<std::int64_t> tokens = loaded->tokenizer->encode("The");
  const ModelInput input{.B = 1, .T = 3, .tokens = tokens};
  Index views = 0;
  const auto print = [&](Index layer, const std::vector<DsfView>& all) { views += layer < 2 ? Index(all.size()) : 0; };
  // from isomer/models/model_dsf.h
  for (const ModelLaw& law : laws_of(*loaded, input, context)) print(law.layer, dsf_views(law.call));
  // end
  EXPECT_EQ(views, 2);
}

}  // namespace
}  // namespace isomer

// As examples_test.cc, for tasks, runs and what is done with trained models.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <vector>

#include "isomer/explore/subject.h"
#include "isomer/models/saved_state.h"
#include "isomer/nn/mixer_dsf.h"
#include "isomer/study/statistics.h"
#include "isomer/train/evaluation.h"
#include "isomer/train/generator.h"
#include "isomer/train/run_folder.h"
#include "isomer/train/session.h"
#include "isomer/train/sweep.h"
#include "tests/examples/surroundings.h"

namespace isomer {
namespace {

/// Untrained runs in a folder of its own, which is the current one meanwhile.
class RunExamples : public ::testing::Test {
 protected:
  void make(const std::string& path, const std::string& task, const Settings& options) {
    Recipe recipe;
    recipe.task = task;
    recipe.task_settings = options;
    recipe.model.width = 8;
    recipe.mixers["softmax"] = {{"heads", "1"}};
    Session session(recipe, context);
    RunFolder::create(path, to_toml(recipe)).save(session.checkpoint(), 1);
  }
  /// A run of text.
  void make_text() {
    std::ofstream("corpus") << std::string(400, 'x');
    make("runs/text", "text", {{"path", "corpus"}, {"length", "8"}});
  }

  Context context{1};
  const std::uint64_t seed = 1;

 private:
  examples::InNewFolder here_;
};

TEST_F(RunExamples, Tasks) {
  const std::uint64_t step = 3;
  // from isomer/tasks/task.h
  const std::unique_ptr<Task> task = make_task("mqar", {{"length", "128"}, {"pairs", "8"}});
  Batch batch;
  task->fill(Split::train, step * 64, 64, batch);  // allocates in the first call only
  // end
  EXPECT_EQ(batch.B, 64);
}

TEST_F(RunExamples, Models) {
  make_text();
  Tape<float> tape(context, Record::no);
  // from isomer/models/model_folder.h
  const std::unique_ptr<LoadedModel> loaded = load_model("runs/text");
  const ModelOutput<float> out = loaded->model.logits(tape, {.B = 1, .T = 3, .tokens = loaded->tokenizer->encode("The")});
  save_model("elsewhere", *loaded);
  // end
  EXPECT_EQ(out.logits.dim(3), 256);
  EXPECT_TRUE(std::filesystem::exists("elsewhere/model.safetensors"));

  const ModelState<float> state = loaded->model.start(1);
  {
    // from isomer/models/saved_state.h
    save_state("state.safetensors", state, *loaded);
    ModelState<float> later = load_state("state.safetensors", *loaded);  // in another process, on another machine
    // end
  }

  Index printed = 0;
  const auto print = [&](std::span<const std::int64_t> tokens) { printed += Index(tokens.size()); };
  // from isomer/train/generator.h
  Generator generator(*loaded, {.temperature = 0.8}, seed, context);
  generator.read({loaded->tokenizer->encode("The "), loaded->tokenizer->encode("Once upon")});
  for (int i = 0; i < 100; ++i) print(generator.next());  // a token of each
  generator.save("state.safetensors");                    // goes on as if nothing had been between
  // end
  EXPECT_EQ(printed, 200);
}

TEST_F(RunExamples, Evaluations) {
  make("runs/mqar", "mqar", {{"vocabulary", "128"}, {"length", "64"}, {"pairs", "4"}});
  make("runs/s3", "word-problem", {{"length", "8"}});
  // from isomer/train/evaluation.h
  const EvalRow row = evaluate_run("runs/mqar", {.settings = {"task.pairs=16"}, .examples = 1024}, context);
  const auto rows = evaluate_grid("runs/s3", {}, parse_grid({"task.test_length=64,128"}), context);
  // end
  EXPECT_EQ(row.eval.examples, 1024);
  EXPECT_EQ(rows.size(), 2U);
}

TEST_F(RunExamples, Sweeps) {
  // Compiled only: it needs the program.
  [[maybe_unused]] const auto sweep = [](const std::atomic<bool>& stop) {
    // from isomer/train/sweep.h
    std::vector<SweepRun> runs = sweep_runs(grid_of(parse_grid({"lr=1e-3,3e-3"}), "recipes/mqar.toml", {}), "runs/mqar-sweep");
    const bool stopped = train_all(runs, {.jobs = 2, .threads = 2, .program = "/usr/bin/isomer"}, {}, stop);
    std::cout << sweep_text(sweep_rows(runs));  // the best first
    // end
    return stopped;
  };
}

TEST_F(RunExamples, Subjects) {
  make_text();
  // from isomer/explore/subject.h
  const std::unique_ptr<const Subject> gla = fresh_subject({.preset = "gla", .words = words_of("the cat sat on the mat")});
  const std::vector<std::vector<LawCall>> calls = gla->calls(context);  // of each layer; nn/mixer_dsf.h
  // end
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_FALSE(calls[0].empty());
  // from isomer/explore/subject.h
  const std::unique_ptr<const Subject> run = model_subject(load_to_look_at("runs/text"), "The end");
  // end
  EXPECT_EQ(run->T(), 7);
}

TEST(Examples, Statistics) {
  using namespace study;
  // from isomer/study/statistics.h
  const Interval accuracy = bootstrap(std::vector<double>{0.97, 0.99, 0.98});  // mean 0.98, low 0.97, high 0.99
  // end
  EXPECT_NEAR(accuracy.mean, 0.98, 1e-12);
  EXPECT_EQ(accuracy.low, 0.97);
}

}  // namespace
}  // namespace isomer

// A sweep as another program calls it: in its own process.
#include "isomer/train/sweep.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "isomer/io/text.h"
#include "isomer/train/evaluation.h"
#include "isomer/train/run_folder.h"
#include "isomer/train/testing.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
using tests::error_of;
using End = SweepEvents::End;

struct Sweep : testing::Test {
  tests::TemporaryFolder folder;
  std::string recipe = folder.path / "recipe.toml", out = folder.path / "sweep";
  std::atomic<bool> stop = false;
  std::vector<std::pair<std::string, End>> ended;
  SweepEvents events{.ended = [this](const SweepRun& run, End end) { ended.emplace_back(run.point.name, end); }};

  Sweep() { write_text(recipe, tests::kSmallRecipe); }
  [[nodiscard]] std::vector<SweepRun> runs_of(const std::string& grid, const Overrides& overrides = {}) const {
    return sweep_runs(grid_of(parse_grid({grid}), recipe, overrides), out);
  }
};

TEST_F(Sweep, TrainsWhatIsNotThereAndRanksIt) {
  std::vector<SweepRun> runs = runs_of("lr=1e-3,1e-2");
  EXPECT_EQ(sweep_rows(runs)[0].state, "waiting");
  std::vector<Index> steps;
  events.progress = [&](const SweepProgress& at) {
    ASSERT_EQ(at.busy.size(), 1u);
    EXPECT_EQ(at.all, 2u);
    steps.push_back(Index(at.done) * 100 + at.busy[0].step);
  };
  EXPECT_FALSE(train_all(runs, {.threads = 1}, events, stop));
  EXPECT_EQ(ended, (std::vector<std::pair<std::string, End>>{{"lr=1e-3", End::done}, {"lr=1e-2", End::done}}));
  EXPECT_EQ(steps.front(), 1);
  EXPECT_EQ(steps.back(), 110);
  const std::vector<SweepRow> rows = sweep_rows(runs);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(rows[0].finished() && rows[1].finished());
  EXPECT_GE(*rows[0].summary.value, *rows[1].summary.value);
  const Json row = to_json(rows[0]);
  EXPECT_TRUE(row.at("set").at("lr").is_number());
  EXPECT_EQ(row.at("step").integer(), 10);
  EXPECT_EQ(row.at("state").text(), "finished");
  EXPECT_LT(sweep_text(rows).find("lr"), sweep_text(rows).find("example accuracy"));
  // Nothing is left to do.
  ended.clear();
  std::size_t there = 0;
  events.found = [&](std::size_t finished, std::size_t) { there = finished; };
  EXPECT_FALSE(train_all(runs, {.threads = 1}, events, stop));
  EXPECT_TRUE(ended.empty());
  EXPECT_EQ(there, 2u);
  EXPECT_NE(error_of([&] { (void)runs_of("lr=1e-3,1e-2", {"train.steps=11"}); }).find("take another --out"), std::string::npos);
}

TEST_F(Sweep, GoesOnWhereItWasStopped) {
  std::vector<SweepRun> runs = runs_of("seed=1,2");
  events.progress = [&](const SweepProgress& at) { stop = at.busy[0].step == 4; };
  EXPECT_TRUE(train_all(runs, {.threads = 1}, events, stop));
  EXPECT_EQ(ended, (std::vector<std::pair<std::string, End>>{{"seed=1", End::stopped}}));
  EXPECT_EQ(sweep_rows(runs)[0].state, "stopped");
  EXPECT_EQ(sweep_rows(runs)[1].state, "waiting");
  stop = false;
  events.progress = {};
  EXPECT_FALSE(train_all(runs, {.threads = 1}, events, stop));
  for (const SweepRow& row : sweep_rows(runs)) EXPECT_TRUE(row.finished()) << row.summary.run;
}

TEST_F(Sweep, ARunThatFailsIsARow) {
  std::vector<SweepRun> runs = runs_of("lr=1e-3,1e30", {"train.clip=0"});
  EXPECT_FALSE(train_all(runs, {.threads = 1}, events, stop));
  const std::vector<SweepRow> rows = sweep_rows(runs);
  EXPECT_EQ(rows[0].state, "finished");
  EXPECT_EQ(rows[1].state, "failed");
  EXPECT_NE(rows[1].summary.problem.value_or("").find("is not finite"), std::string::npos);
  EXPECT_EQ(ended[1].second, End::failed);
}

TEST_F(Sweep, RunsAreFoundAtAnyDepthAndSummarised) {
  std::vector<SweepRun> runs = runs_of("seed=1");
  EXPECT_FALSE(train_all(runs, {.threads = 1, .tensorboard = true}, events, stop));
  EXPECT_TRUE(std::filesystem::is_directory(out + "/seed=1/tensorboard"));
  ASSERT_EQ(runs_below(out), std::vector<std::string>{out + "/seed=1"});
  const RunSummary row = summary_of(out + "/seed=1");
  EXPECT_EQ(row.task, "mqar");
  EXPECT_EQ(row.layers, "gla,sliding-window");
  EXPECT_EQ(row.state, RunState::finished);
  EXPECT_EQ(row.step, 10);
  EXPECT_GT(row.parameters.value_or(0), 0);
  EXPECT_EQ(to_json(row).at("metric").text(), name_of(*row.metric));
  EXPECT_EQ(error_of([] { (void)runs_below("nowhere"); }), "nowhere: expected a folder with runs, got no folder");
  Context context(1);
  const EvalRow eval = evaluate_run(out + "/seed=1", {.examples = 64}, context);
  EXPECT_EQ(eval.eval.examples, 64);
  EXPECT_EQ(to_json(eval).at("step").integer(), 10);
  EXPECT_EQ(eval_text(eval).substr(0, eval.run.size() + 15), eval.run + ", step 10, mqar");
}

TEST_F(Sweep, ARunThatCannotBeReadIsARowWithTheLine) {
  (void)RunFolder::create(out, tests::kSmallRecipe);
  write_text(out + "/metrics.jsonl", "{\"step\":1}\n");
  EXPECT_EQ(summary_of(out).problem, out + "/metrics.jsonl:1: expected loss, eval or failed, got none of them");
}

}  // namespace
}  // namespace isomer

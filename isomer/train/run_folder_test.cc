#include "isomer/train/run_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "isomer/base/error.h"
#include "isomer/io/text.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
namespace fs = std::filesystem;
using tests::error_of;

class RunFolderTest : public ::testing::Test {
 protected:
  static Checkpoint at(Index step) {
    Checkpoint checkpoint{.step = step,
                          .model = {.config = "{}", .weights = {}},
                          .optimiser = {},
                          .state = "{\"step\":" + std::to_string(step) + "}"};
    Tensor w(Type::f32, {2});
    w.data<float>()[0] = float(step);
    w.data<float>()[1] = 1;
    checkpoint.model.weights.emplace("w", std::move(w));
    return checkpoint;
  }
  tests::TemporaryFolder folder_;
  std::string path_ = folder_.path / "run";
};

TEST_F(RunFolderTest, KeepsTheNewestCheckpointsAndPointsToTheLast) {
  const RunFolder folder = RunFolder::create(path_, "[task]\n");
  EXPECT_FALSE(folder.has_checkpoint());
  for (const Index step : {5, 10, 15}) folder.save(at(step), 2);
  EXPECT_EQ(folder.checkpoints(), (std::vector<Index>{10, 15}));
  EXPECT_EQ(fs::read_symlink(path_ + "/checkpoints/latest").string(), "step-15");
  const Checkpoint last = RunFolder::open(path_).load_latest();
  EXPECT_EQ(last.step, 15);
  EXPECT_EQ(last.model.weights.at("w").data<float>()[0], 15);
  EXPECT_EQ(last.state, "{\"step\":15}");
}

TEST_F(RunFolderTest, ACheckpointThatWasCutOffIsNotOne) {
  const RunFolder folder = RunFolder::create(path_, "");
  folder.save(at(5), 2);
  fs::create_directories(path_ + "/checkpoints/writing-10");
  std::ofstream(path_ + "/checkpoints/writing-10/model.safetensors") << "half";
  EXPECT_EQ(folder.load_latest().step, 5);
  folder.save(at(10), 2);
  EXPECT_EQ(folder.load_latest().step, 10);
  EXPECT_FALSE(fs::exists(path_ + "/checkpoints/writing-10"));
}

TEST_F(RunFolderTest, KeepsTheBestBesideTheNewest) {
  const RunFolder folder = RunFolder::create(path_, "");
  EXPECT_EQ(folder.best_step(), std::nullopt);
  for (const Index step : {5, 10, 15, 20}) {
    folder.save(at(step), 2);
    if (step == 5) folder.mark_best(step);
  }
  EXPECT_EQ(folder.checkpoints(), (std::vector<Index>{5, 15, 20}));
  EXPECT_EQ(folder.best_step(), 5);
  EXPECT_EQ(run_path(path_ + "@best").step, 5);
  EXPECT_EQ(find_model(path_ + "@step-15"), path_ + "/checkpoints/step-15");
  EXPECT_EQ(error_of([&] { (void)find_model(path_ + "@step-10"); }),
            path_ + "@step-10: expected one of the checkpoints step-5, step-15, step-20, got step-10");
  folder.mark_best(20);
  folder.save(at(25), 2);
  EXPECT_EQ(folder.checkpoints(), (std::vector<Index>{20, 25})) << "what was the best before goes";
}

TEST_F(RunFolderTest, SetsADamagedCheckpointAside) {
  const RunFolder folder = RunFolder::create(path_, "");
  for (const Index step : {5, 10}) folder.save(at(step), 2);
  const std::string file = path_ + "/checkpoints/step-10/state.json";
  std::ofstream(file) << "{";
  EXPECT_TRUE(error_of([&] { (void)folder.load_latest(); }).starts_with(file + ": expected JSON, got "));
  folder.set_aside(10);
  folder.tidy();
  EXPECT_EQ(folder.load_latest().step, 5);
  EXPECT_EQ(fs::read_symlink(path_ + "/checkpoints/latest").string(), "step-5");
  EXPECT_TRUE(fs::exists(path_ + "/checkpoints/damaged-10/model.safetensors"));
}

TEST_F(RunFolderTest, IsTidyAfterAKill) {
  const RunFolder folder = RunFolder::create(path_, "");
  for (const Index step : {5, 10}) folder.save(at(step), 2);
  // As if the process had gone between a checkpoint and the link to it, and another time before the checkpoint was whole.
  const fs::path checkpoints = path_ + "/checkpoints";
  fs::remove(checkpoints / "latest");
  fs::create_directory_symlink("step-5", checkpoints / "latest");
  fs::create_directory_symlink("step-10", checkpoints / "latest.new");
  fs::create_directories(checkpoints / "writing-15");
  folder.tidy();
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(checkpoints)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"latest", "step-10", "step-5"}));
  EXPECT_EQ(fs::read_symlink(checkpoints / "latest").string(), "step-10");
}

TEST_F(RunFolderTest, WhoDoesNotTrainReadsNoOptimiser) {
  const RunFolder folder = RunFolder::create(path_, "");
  folder.save(at(5), 2);
  fs::remove(path_ + "/checkpoints/step-5/optimizer.safetensors");
  const Checkpoint last = folder.load_model();
  EXPECT_EQ(last.step, 5);
  EXPECT_EQ(last.model.weights.at("w").data<float>()[0], 5);
  EXPECT_EQ(last.model.config, "{}");
  EXPECT_EQ(folder.latest_text("state.json"), "{\"step\":5}");
  EXPECT_THROW((void)folder.load_latest(), Error);
}

TEST_F(RunFolderTest, IsTrainedByOneAtATime) {
  const RunFolder folder = RunFolder::create(path_, "");
  EXPECT_FALSE(folder.is_claimed());
  {
    const FileLock claim = folder.claim();
    EXPECT_TRUE(folder.is_claimed());
    EXPECT_THROW((void)RunFolder::open(path_).claim(), Error);
  }
  EXPECT_FALSE(folder.is_claimed());
}

TEST_F(RunFolderTest, IsBegunByOneOfSeveralAtOnce) {
  constexpr int kRounds = 100, kThreads = 4;
  for (int round = 0; round < kRounds; ++round) {
    const std::string path = path_ + std::to_string(round);
    std::atomic<int> begun = 0;
    std::vector<std::string> errors(kThreads);
    std::barrier ready(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        ready.arrive_and_wait();
        errors[std::size_t(i)] = error_of([&] {
          (void)RunFolder::create(path, std::to_string(i));
          ++begun;
        });
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(begun, 1) << round;
    for (int i = 0; i < kThreads; ++i) {
      const std::string& error = errors[std::size_t(i)];
      if (error == "no error")
        EXPECT_EQ(read_text(path + "/recipe.toml"), std::to_string(i));
      else
        EXPECT_TRUE(error.starts_with(path + ": expected a folder without a run, got one with recipe.toml")) << error;
    }
  }
}

TEST_F(RunFolderTest, ReadsTextsOfTheLastCheckpoint) {
  const RunFolder folder = RunFolder::create(path_, "");
  EXPECT_EQ(folder.latest_text("state.json"), "");
  folder.save(at(5), 2);
  folder.save(at(10), 2);
  EXPECT_EQ(folder.latest_text("state.json"), "{\"step\":10}");
}

TEST_F(RunFolderTest, RefusesWhatIsNoRunAndWhatIsOneAlready) {
  EXPECT_EQ(error_of([&] { (void)RunFolder::open(path_); }),
            path_ + ": expected the folder of a run (with recipe.toml), got none");
  const RunFolder folder = RunFolder::create(path_, "");
  EXPECT_EQ(error_of([&] { (void)RunFolder::create(path_, ""); }),
            path_ +
                ": expected a folder without a run, got one with recipe.toml; go on with it by isomer train --resume or take "
                "another --out");
  EXPECT_EQ(error_of([&] { (void)folder.load_latest(); }), path_ + ": expected a run with a checkpoint, got none");
  fs::create_directories(path_ + "/checkpoints/step-3");
  EXPECT_NE(error_of([&] { (void)folder.load_latest(); }).find("step-3/model.safetensors"), std::string::npos);
}

}  // namespace
}  // namespace isomer

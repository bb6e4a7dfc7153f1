#include "isomer/train/grid.h"

#include <gtest/gtest.h>

#include <fstream>

#include "isomer/train/testing.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

class Grid : public ::testing::Test {
 protected:
  void SetUp() override { std::ofstream(path_) << tests::kSmallRecipe; }
  [[nodiscard]] std::vector<GridPoint> points(const std::vector<std::string>& grid, const Overrides& overrides = {}) const {
    return grid_of(parse_grid(grid), path_, overrides);
  }
  [[nodiscard]] std::string error_of(const std::vector<std::string>& grid) const {
    return tests::error_of([&] { (void)points(grid); });
  }

  tests::TemporaryFolder folder_;
  std::string path_ = folder_.path / "small.toml";
};

TEST_F(Grid, IsEveryCombination) {
  const auto all = points({"mixer=softmax,gla", "lr=1e-3,3e-3,seed=1,2,3"}, {"train.batch=4"});
  ASSERT_EQ(all.size(), 12u);
  EXPECT_EQ(all[0].name, "mixer=softmax,lr=1e-3,seed=1");
  EXPECT_EQ(all[1].name, "mixer=softmax,lr=1e-3,seed=2");
  EXPECT_EQ(all[11].name, "mixer=gla,lr=3e-3,seed=3");
  EXPECT_EQ(all[11].values, (std::vector<std::pair<std::string, std::string>>{{"mixer", "gla"}, {"lr", "3e-3"}, {"seed", "3"}}));
  EXPECT_EQ(all[11].recipe.train.lr, 3e-3);
  EXPECT_EQ(all[11].recipe.train.seed, 3u);
  EXPECT_EQ(all[11].recipe.train.batch, 4);
  EXPECT_EQ(all[11].metric, Metric::example_accuracy);
}

TEST_F(Grid, MixerSetsEveryLayer) {
  const auto all = points({"mixer=sliding-window,gla"}, {"model.repeat=3"});
  EXPECT_EQ(layers_of(all[0].recipe.model), std::vector<std::string>(6, "sliding-window"));
  EXPECT_EQ(layers_of(all[1].recipe.model), std::vector<std::string>(6, "gla"));
  EXPECT_TRUE(all[0].recipe.mixers.contains("sliding-window"));
  EXPECT_FALSE(all[1].recipe.mixers.contains("sliding-window")) << "options of what is not there";
  EXPECT_TRUE(all[1].recipe.mixers.contains("all"));
}

TEST_F(Grid, OptionsForAllAreThoseOfALayerOfSomePoint) {
  const auto all = points({"mixer=softmax,mamba"}, {"mixer.all.expand=1"});
  EXPECT_EQ(all[0].recipe.mixers.at("all"), (Settings{{"heads", "2"}}));
  EXPECT_EQ(all[1].recipe.mixers.at("all"), (Settings{{"expand", "1"}}));
  EXPECT_EQ(tests::error_of([&] { (void)points({"mixer=softmax,gla"}, {"mixer.all.expand=1"}); }),
            "mixer=softmax: --set: no layer has the option expand");
}

TEST_F(Grid, TakesListsOfLayersAndOptionsOfOthers) {
  const auto all = points({"layers=gla+softmax,mlstm*2", "task.pairs=2,4"}, {"model.repeat=2"});
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(layers_of(all[0].recipe.model), (std::vector<std::string>{"gla", "softmax", "gla", "softmax"}));
  EXPECT_EQ(all[3].name, "layers=mlstmx2,task.pairs=4");
  EXPECT_EQ(all[3].recipe.task_settings.at("pairs"), "4");
}

TEST_F(Grid, NamesTheMistake) {
  EXPECT_EQ(error_of({}), "--grid: expected at least one KEY=VALUE,VALUE,…, got none");
  EXPECT_EQ(error_of({"mixer"}), "--grid: expected KEY=VALUE,VALUE,…, got mixer");
  EXPECT_EQ(error_of({"gla,mixer=softmax"}), "--grid: expected KEY=VALUE,VALUE,…, got gla,mixer=softmax");
  EXPECT_EQ(error_of({"mixr=gla"}), "--grid: unknown key mixr, did you mean mixer?");
  EXPECT_EQ(error_of({"train.lrr=1"}), "--grid: unknown key train.lrr, did you mean train.lr?");
  EXPECT_EQ(error_of({"widht=1"}), "--grid: unknown key widht, did you mean width?");
  EXPECT_EQ(error_of({"pairs=2,4"}), "--grid: unknown key pairs, did you mean task.pairs?");
  EXPECT_EQ(error_of({"lr=1,2", "train.lr=3"}), "--grid: expected each key once, got train.lr twice");
  EXPECT_EQ(error_of({"lr=1,2,1"}), "--grid: expected each value of lr once, got 1 twice");
  EXPECT_EQ(error_of({"lr="}), "--grid: expected a value of lr, got none");
  EXPECT_EQ(error_of({"lr=1,,2"}), "--grid: expected a value of lr, got none");
  EXPECT_EQ(error_of({"mixer=glaa"}), "mixer=glaa: unknown preset glaa, did you mean gla?");
  EXPECT_EQ(error_of({"lr=fast"}), "lr=fast: --set: expected a finite number of at least 0 for train.lr, got fast");
  EXPECT_EQ(error_of({"task.pears=2"}), "task.pears=2: --set: mqar: unknown option pears, did you mean pairs?");
  EXPECT_EQ(error_of({"layers=gla*2,glax2"}),
            "--grid: expected values that differ in letters and digits, got layers=glax2 twice");
  std::string many = "seed=0";
  for (int i = 1; i <= 10000; ++i) many += "," + std::to_string(i);
  EXPECT_EQ(error_of({many}), "--grid: expected at most 10000 combinations, got more");
}

}  // namespace
}  // namespace isomer

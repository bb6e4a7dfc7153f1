#include "isomer/train/start.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "isomer/models/model_files.h"
#include "isomer/train/session.h"
#include "isomer/train/testing.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
using tests::error_of;
using Fate = StartedWeight::Fate;

Recipe recipe_with(const Overrides& overrides) { return parse_recipe(parse_toml(tests::kSmallRecipe, "small.toml"), overrides); }

/// A run after one step.
class Start : public ::testing::Test {
 protected:
  void SetUp() override {
    Session session(tests::small_recipe(), context_);
    (void)session.step();
    RunFolder::create(path_, to_toml(tests::small_recipe())).save(session.checkpoint(), 1);
    weights_ = session.parameters().tensors();
  }
  [[nodiscard]] bool same(Session& session, const std::string& name) const {
    const std::span<const float> own = session.parameters().find(name).values();
    return std::ranges::equal(own, std::span(weights_.at(name).data<float>(), own.size()));
  }

  Context context_{1};
  tests::TemporaryFolder folder_;
  std::string path_ = folder_.path / "run";
  Tensors weights_;
};

TEST_F(Start, TakesEveryWeightOfTheSameModel) {
  Session session(recipe_with({"train.seed=7"}), context_);
  EXPECT_FALSE(same(session, "embedding.weight"));
  const StartReport report = start_from(session.parameters(), path_);
  EXPECT_EQ(report.from, path_ + "/checkpoints/step-1");
  EXPECT_EQ(report.count(Fate::taken), Index(weights_.size()));
  EXPECT_EQ(report.weights.size(), weights_.size());
  for (const auto& [name, tensor] : weights_) EXPECT_TRUE(same(session, name)) << name;
  EXPECT_EQ(session.steps_done(), 0);
  // The folder of the checkpoint alone is a model too.
  EXPECT_EQ(start_from(session.parameters(), report.from).count(Fate::taken), Index(weights_.size()));
}

TEST_F(Start, ListsWhatItDidNotTake) {
  // Another vocabulary, and a third layer.
  Session session(recipe_with({"task.vocabulary=128", "model.layers=gla,sliding-window*2", "train.seed=7"}), context_);
  const StartReport report = start_from(session.parameters(), path_);
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json.at("from"), path_ + "/checkpoints/step-1");
  EXPECT_EQ(json.at("misshapen").dump(), R"([{"name":"embedding.weight","shape":[128,16],"there":[64,16]}])");
  EXPECT_EQ(json.at("taken").size(), weights_.size() - 1);
  EXPECT_TRUE(same(session, "layers.1.mixer.q.weight"));
  for (const auto& name : json.at("missing")) EXPECT_TRUE(name.get<std::string>().starts_with("layers.2.")) << name;
  EXPECT_GT(json.at("missing").size(), 4U);
  EXPECT_EQ(json.at("unknown").size(), 0U);

  Session shorter(recipe_with({"model.layers=sliding-window", "train.seed=7"}), context_);
  const StartReport less = start_from(shorter.parameters(), path_);
  EXPECT_GT(less.count(Fate::unknown), 4);
  EXPECT_GT(less.count(Fate::taken), 4);
}

TEST_F(Start, RefusesWhatHasNothingInCommon) {
  Session session(recipe_with({"model.width=32"}), context_);
  EXPECT_EQ(error_of([&] { (void)start_from(session.parameters(), path_); }),
            path_ + "/checkpoints/step-1: expected weights with names and shapes of the model, got " +
                std::to_string(weights_.size()) + " others");
  EXPECT_EQ(error_of([&] { (void)start_from(session.parameters(), path_ + "-2"); }),
            path_ + "-2: expected the folder of a run or of a model (with config.json), got neither");
  ModelFiles spoiled = read_model_files(find_model(path_));
  spoiled.weights.at("norm.weight").data<float>()[0] = std::numeric_limits<float>::infinity();
  write_model_files(find_model(path_), spoiled);
  EXPECT_THROW((void)start_from(session.parameters(), path_), NotFinite);
}

TEST_F(Start, IsAKeyOfRecipesWithAWholePath) {
  EXPECT_EQ(tests::small_recipe().train.start, "");
  EXPECT_EQ(recipe_with({"train.start=/a/./b"}).train.start, "/a/b");
  const std::string relative = recipe_with({"train.start=runs/a"}).train.start;
  EXPECT_TRUE(relative.starts_with("/") && relative.ends_with("/runs/a")) << relative;
  EXPECT_EQ(parse_recipe(parse_toml(to_toml(recipe_with({"train.start=/a/b"})), "again")).train.start, "/a/b");
}

}  // namespace
}  // namespace isomer

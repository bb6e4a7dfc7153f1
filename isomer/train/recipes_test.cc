// The files of recipes/: each says what to expect of it, and trains.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "isomer/tasks/testing.h"
#include "isomer/train/session.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
namespace fs = std::filesystem;

const fs::path kFolder = fs::path(ISOMER_SOURCE_DIR) / "recipes";

std::vector<fs::path> recipes() {
  std::vector<fs::path> all;
  for (const auto& file : fs::directory_iterator(kFolder))
    if (file.path().extension() == ".toml") all.push_back(file.path());
  std::ranges::sort(all);
  return all;
}

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class EveryRecipe : public ::testing::TestWithParam<fs::path> {};
INSTANTIATE_TEST_SUITE_P(Recipes, EveryRecipe, ::testing::ValuesIn(recipes()), [](const auto& one) {
  std::string name = one.param.stem();
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST_P(EveryRecipe, SaysWhatToExpect) {
  const std::string text = text_of(GetParam()), comment = text.substr(0, text.find("\n["));
  EXPECT_TRUE(std::regex_search(comment, std::regex("# Expect [^#]*[0-9][^#]*, [0-9]+ s on two cores"))) << comment;
  const std::string name = GetParam().filename();
  EXPECT_NE(text_of(kFolder / "README.md").find("[" + name + "](" + name + ")"), std::string::npos) << "recipes/README.md";
}

TEST_P(EveryRecipe, Trains) {
  // Data of the same shape as that of packages which may not be installed.
  const tests::TemporaryFolder pictures;
  write_pictures(pictures.path, {.rows = 28, .columns = 28, .train_labels = {0, 9, 1}, .test_labels = {2, 3}});
  Overrides overrides{"train.steps=1", "train.batch=2", "train.warmup=0"};
  const std::string task = read_recipe(GetParam()).task;
  if (task == "text") overrides.push_back("task.path=" ISOMER_SOURCE_DIR "/isomer/train");
  if (task == "images") overrides.push_back("task.path=" + pictures.path.string());
  Context context(2);
  Session session(read_recipe(GetParam(), overrides), context);
  EXPECT_GT(session.step().loss, 0);
  EXPECT_GT(session.evaluate({.examples = 2}).loss, 0);
}

}  // namespace
}  // namespace isomer

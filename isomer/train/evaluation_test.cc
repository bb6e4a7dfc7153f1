#include "isomer/train/evaluation.h"

#include <gtest/gtest.h>

#include "isomer/base/format.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

/// A run of a task after one step.
class Evaluation : public ::testing::Test {
 protected:
  void train(const std::string& task) {
    const std::string text =
        "[model]\nwidth = 8\nlayers = [\"gla\"]\n[mixer.all]\nheads = 1\n[task]\n" + task + "\n[train]\nsteps = 1\nbatch = 4\n";
    const Recipe recipe = parse_recipe(parse_toml(text, "small.toml"));
    Session session(recipe, context_);
    (void)session.step();
    RunFolder::create(path_, to_toml(recipe)).save(session.checkpoint(), 1);
  }
  [[nodiscard]] EvalRow row(const Overrides& settings) {
    return evaluate_run(path_, {.settings = settings, .examples = 20}, context_);
  }
  [[nodiscard]] std::string error_of(const Overrides& settings) {
    return tests::error_of([&] { (void)row(settings); });
  }

  Context context_{1};
  tests::TemporaryFolder folder_;
  std::string path_ = folder_.path / "run";
};

constexpr const char* kWords = "name = \"word-problem\"\nlength = 8\ntest_length = 12";

TEST_F(Evaluation, SaysWhatItScored) {
  train(kWords);
  const EvalRow own = row({});
  EXPECT_EQ(eval_text(own).substr(own.run.size()), ", step 1, word-problem: exact " + text_of(own.eval.value) + ", loss " +
                                                       text_of(own.eval.loss) + " on 20 examples of the test split, 13 long\n");
  const Json json = to_json(row({"task.test_length=16"}));
  EXPECT_EQ(json.at("split").text(), "test");
  EXPECT_EQ(json.at("shortest").integer(), 17);
  EXPECT_EQ(json.at("longest").integer(), 17);
  EXPECT_EQ(json.at("examples").integer(), 20);
  EXPECT_EQ(row({"task.test_examples=7"}).eval.examples, 7);
}

TEST_F(Evaluation, ScoresTheSplitThatIsAskedFor) {
  train(kWords);
  const EvalRow of_train = evaluate_run(path_, {.examples = 20, .split = Split::train}, context_);
  EXPECT_NE(eval_text(of_train).find(" on 20 examples of the train split, 9 long"), std::string::npos) << eval_text(of_train);
  EXPECT_EQ(to_json(of_train).at("split").text(), "train");
  EXPECT_EQ(tests::error_of([&] { (void)evaluate_run(path_, {.split = Split::validation}, context_); }),
            "validation: word-problem keeps no examples for it, expected the split train or test");
  EXPECT_EQ(
      tests::error_of([&] { (void)evaluate_run(path_, {.settings = {"task.test_length=9"}, .split = Split::train}, context_); }),
      "task.test_length=9 changes nothing in the train examples of word-problem");
}

TEST_F(Evaluation, RefusesOptionsThatDoNotReachTheTest) {
  train(kWords);
  const std::string nothing = " changes nothing in the test examples of word-problem";
  EXPECT_EQ(error_of({"task.length=256"}), "task.length=256" + nothing + "; task.test_length does");
  EXPECT_EQ(error_of({"task.train_examples=9"}), "task.train_examples=9" + nothing + "; task.test_examples does");
  EXPECT_EQ(error_of({"task.test_examples=900"}), "task.test_examples=900" + nothing + "; --examples does");
  EXPECT_EQ(error_of({"task.test_length=16", "task.length=16"}), "task.length=16" + nothing + "; task.test_length does");
  EXPECT_EQ(error_of({"task.length=8"}), "no error") << "as it is";
  EXPECT_EQ(error_of({"task.seed=1"}), "no error");
  EXPECT_EQ(error_of({"task.grup=S2"}), "--set: word-problem: unknown option grup, did you mean group?");
}

TEST_F(Evaluation, NamesTheOptionOfTheTest) {
  train("name = \"parity\"\nlongest = 12\ntest_shortest = 12\ntest_longest = 16");
  const std::string nothing = " changes nothing in the test examples of parity; ";
  EXPECT_EQ(error_of({"task.longest=1000"}), "task.longest=1000" + nothing + "task.test_longest does");
  EXPECT_EQ(error_of({"task.shortest=4"}), "task.shortest=4" + nothing + "task.test_shortest does");
  const EvalRow longer = row({"task.test_longest=40"});
  EXPECT_GE(longer.eval.shortest, 12);
  EXPECT_GT(longer.eval.longest, 16);
  EXPECT_NE(eval_text(longer).find(" examples of the test split, " + std::to_string(longer.eval.shortest) + " to " +
                                   std::to_string(longer.eval.longest) + " long\n"),
            std::string::npos);
}

TEST_F(Evaluation, SeesWhatAnOptionDoesWithTheOthers) {
  train("name = \"copying\"\nlongest = 8\ncontext = 32\ntest_length = 8");
  const std::string nothing = " changes nothing in the test examples of copying; task.test_length does";
  EXPECT_EQ(error_of({"task.context=40"}), "task.context=40" + nothing);
  EXPECT_EQ(error_of({"task.ngram=2"}), "task.ngram=2" + nothing) << "a copy has no n-grams";
  EXPECT_EQ(error_of({"task.variant=suffix", "task.ngram=1"}), "no error");
  // Neither goes without the other.
  EXPECT_EQ(error_of({"task.variant=suffix", "task.ngram=4", "task.shortest=5"}), "no error");
}

TEST_F(Evaluation, MakesATableOfAGrid) {
  train(kWords);
  const std::vector<EvalRow> rows =
      evaluate_grid(path_, {.examples = 10}, parse_grid({"task.test_length=6,12,task.seed=0,1"}), context_);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[2].eval.loss, row({"task.test_examples=10"}).eval.loss) << "12 and 0 are the run's own";
  EXPECT_NE(rows[3].eval.loss, rows[2].eval.loss);
  EXPECT_EQ(to_json(rows[1]).at("set").dump(), R"({"task.test_length":6,"task.seed":1})");
  EXPECT_EQ(to_json(rows[1]).at("longest").integer(), 7);
  const std::string table = eval_table(rows);
  EXPECT_TRUE(table.starts_with("task.test_length  task.seed  exact")) << table;
  EXPECT_EQ(std::ranges::count(table, '\n'), 5) << table;
  EXPECT_EQ(tests::error_of([&] { (void)evaluate_grid(path_, {}, parse_grid({"task.length=8,16"}), context_); }),
            "task.length=16 changes nothing in the test examples of word-problem; task.test_length does");
  const EvalRequest both{.settings = {"task.test_length=6"}};
  EXPECT_EQ(tests::error_of([&] { (void)evaluate_grid(path_, both, parse_grid({"task.test_length=6,12"}), context_); }),
            "--grid: expected task.test_length once, got task.test_length=6 beside it");
}

}  // namespace
}  // namespace isomer

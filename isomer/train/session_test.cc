#include "isomer/train/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "isomer/io/text.h"
#include "isomer/models/logits.h"
#include "isomer/train/testing.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
using tests::small_recipe;

void fill(Session& session, const char* name, float value) { std::ranges::fill(session.parameters().find(name).values(), value); }

std::string failure_of(Session& session) {
  try {
    (void)session.step();
  } catch (const NotFinite& problem) {
    return problem.what();
  }
  return "no failure";
}

TEST(Session, NamesTheLayerThatSpoilsTheLoss) {
  Context context(1);
  Session session(small_recipe(), context);
  (void)session.step();
  fill(session, "layers.1.mixer.v.weight", std::numeric_limits<float>::infinity());
  EXPECT_EQ(failure_of(session), "step 2: the loss is not finite; layer 1 (sliding-window) first produced such a value");
  EXPECT_EQ(session.steps_done(), 1);
}

TEST(Session, BeginsWithZerosWhereWeightsComeFromElsewhere) {
  Context context(1);
  Session session(small_recipe(), context, Weights::zero);
  for (const Parameter<float>& p : session.parameters().all())
    EXPECT_TRUE(std::ranges::all_of(p.values(), [](float x) { return x == 0; })) << p.name();
}

TEST(Session, RefusesAStateThatItCannotRead) {
  Context context(1);
  Session session(small_recipe(), context);
  Checkpoint checkpoint = session.checkpoint();
  EXPECT_EQ(checkpoint.state, "{\n \"extra\": {},\n \"seed\": 1,\n \"step\": 0,\n \"version\": 1\n}\n");
  const auto error_with = [&](const std::string& state) {
    checkpoint.state = state;
    return tests::error_of([&] { session.resume(checkpoint); });
  };
  EXPECT_EQ(error_with(R"({"version":2,"step":1})"), "state.json: expected version 1 or older, got 2");
  EXPECT_EQ(error_with(R"({"version":1})"), "state.json: expected a member step, got none");
  EXPECT_TRUE(error_with("{").starts_with("state.json: file: expected JSON, got a parse error at line 1, column 2"));
}

TEST(Session, SavesNoWeightsThatAreNotFinite) {
  Context context(1);
  Session session(small_recipe(), context);
  fill(session, "norm.weight", std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(tests::error_of([&] { (void)session.checkpoint(); }),
            "step 0: the weights are not finite; norm.weight is the first of them");
}

TEST(Session, NamesTheLayerThatSpoilsTheGradientOfAFiniteLoss) {
  Context context(1);
  Session session(small_recipe(), context);
  // The hidden numbers of the MLP are 0, so its output is; what flows back through the huge weights is not.
  fill(session, "layers.0.mlp.up.weight", 0);
  fill(session, "layers.0.mlp.down.weight", std::numeric_limits<float>::max());
  fill(session, "norm.weight", 1e12f);
  EXPECT_EQ(failure_of(session), "step 1: the gradient is not finite; layer 0 (gla) first produced such a value");
  EXPECT_EQ(session.steps_done(), 0);
}

TEST(Session, NamesThePlaceOfAMistake) {
  Context context(1);
  const auto error_of = [&](const std::string& text, const Overrides& overrides) {
    return tests::error_of([&] { const Session session(parse_recipe(parse_toml(text, "small.toml"), overrides), context); });
  };
  const std::string small = tests::kSmallRecipe;
  EXPECT_EQ(error_of(small, {"task.name=mqqar"}), "--set: unknown task mqqar, did you mean mqar?");
  EXPECT_EQ(error_of("[task]\nlength = 64\nname = \"mqqar\"\n", {}), "small.toml:3: unknown task mqqar, did you mean mqar?");
  EXPECT_EQ(error_of(small, {"mixer.all.hedas=2"}), "--set: unknown option hedas, did you mean heads?");
  EXPECT_EQ(error_of(small, {"mixer.all.expand=1"}), "--set: no layer has the option expand");
  EXPECT_EQ(error_of(small + "warmup = 12\n", {}), "small.toml:16: schedule: expected warmup from 0 to steps = 10, got 12");
}

TEST(Session, LeavesWhatIsFrozenAsItStarts) {
  Context context(1);
  Recipe recipe = small_recipe();
  recipe.train.freeze = "layers.0.mixer.q,norm1";
  Session session(recipe, context), fresh(recipe, context);
  for (int step = 0; step < 3; ++step) (void)session.step();
  for (const Parameter<float>& p : session.parameters().all()) {
    const bool frozen = p.name().starts_with("layers.0.mixer.q") || p.name().find("norm1") != p.name().npos;
    EXPECT_EQ(std::ranges::equal(p.values(), fresh.parameters().find(p.name()).values()), frozen) << p.name();
  }
  const auto error = [&](const char* names) {
    recipe.train.freeze = names;
    return tests::error_of([&] { const Session refused(recipe, context); });
  };
  EXPECT_TRUE(
      error("mixer.q,mixer.w")
          .ends_with("expected parts of the names of parameters for train.freeze, got mixer.w, which is in none of them"));
  EXPECT_TRUE(error("e").ends_with("expected something to train, got all of it frozen"));
}

/// A run with one checkpoint.
class OpenRunOn : public ::testing::Test {
 protected:
  void SetUp() override {
    Session session(small_recipe(), context_);
    (void)session.step();
    const RunFolder folder = RunFolder::create(path_, to_toml(small_recipe()));
    folder.save(session.checkpoint(), 1);
    own_ = session.evaluate({.examples = 16});
  }
  [[nodiscard]] std::string error_of(const std::string& task, const Overrides& options) {
    return tests::error_of([&] { (void)open_run_on(path_, task, options, context_); });
  }

  Context context_{1};
  EvalReport own_;
  tests::TemporaryFolder folder_;
  std::string path_ = folder_.path / "run";
};

TEST_F(OpenRunOn, EvaluatesTheSameWeightsOnOtherTasks) {
  const auto same = open_run_on(path_, "", {}, context_);
  EXPECT_EQ(same->evaluate({.examples = 16}).loss, own_.loss);
  EXPECT_EQ(same->steps_done(), 1);
  const auto longer = open_run_on(path_, "", {"task.length=40", "task.vocabulary=50"}, context_);
  EXPECT_EQ(longer->task().shape().length, 40);
  EXPECT_EQ(longer->task().options().at("pairs"), "2") << "options that are not set are the run's";
  EXPECT_EQ(longer->config().vocabulary, 64) << "the model stays as it is";
  EXPECT_TRUE(std::isfinite(longer->evaluate({.examples = 16}).loss));
  const auto other = open_run_on(path_, "induction", {"task.vocabulary=64", "task.test_length=40"}, context_);
  EXPECT_EQ(other->task().shape().vocabulary, 64);
  EXPECT_TRUE(std::isfinite(other->evaluate({.examples = 16, .batch = 3}).loss));
}

TEST_F(OpenRunOn, NeedsItsDataForEvaluationsOnly) {
  // As if the data of the task had been on another machine.
  Recipe recipe = small_recipe();
  recipe.task = "text";
  recipe.task_settings = {{"path", "/nowhere/at/all"}};
  write_text(path_ + "/recipe.toml", to_toml(recipe));
  const auto session = open_run(path_, context_);
  EXPECT_EQ(session->config().vocabulary, 64);
  EXPECT_EQ(session->checkpoint().model.tokenizer, "");
  EXPECT_NE(tests::error_of([&] { (void)session->evaluate({.examples = 16}); }).find("cannot read /nowhere/at/all"),
            std::string::npos);
}

TEST(TokenizerOf, IsWhatTheTaskWrites) {
  const auto name = [](const char* task, const Settings& options) {
    return std::string(tokenizer_of(*make_task(task, options))->name());
  };
  EXPECT_EQ(name("text", {{"path", ISOMER_SOURCE_DIR "/isomer/train"}}), "bytes");
  EXPECT_EQ(name("mqar", {}), "numbers");
  for (const char* task : {"copying", "needle", "word-problem", "listops", "parity"}) EXPECT_EQ(name(task, {}), "words") << task;
  EXPECT_EQ(tokenizer_of(*make_task("regression", {})), nullptr);
}

TEST_F(OpenRunOn, HasTheLossOfItsLogits) {
  Batch batch;
  open_run(path_, context_)->task().fill(Split::test, 0, 16, batch);
  Tensors in;
  for (const auto& [name, numbers] : {std::pair("tokens", &batch.tokens), {"targets", &batch.labels}}) {
    Tensor tensor(Type::i64, {batch.B, batch.T});
    std::ranges::copy(*numbers, tensor.data<std::int64_t>());
    in.emplace(name, std::move(tensor));
  }
  const auto loaded = load_model(path_);
  for (const bool stream : {false, true})
    EXPECT_NEAR(logits_of(*loaded, in, {.stream = stream}, context_).at("loss").data<float>()[0], own_.loss, 1e-5);
}

TEST_F(OpenRunOn, EvaluatesAtLeastOneExample) {
  const auto session = open_run_on(path_, "", {}, context_);
  EXPECT_EQ(tests::error_of([&] { (void)session->evaluate({.examples = 0}); }), "evaluate: expected at least one example, got 0");
}

TEST_F(OpenRunOn, RefusesWhatTheModelCannotDo) {
  EXPECT_EQ(error_of("", {"task.vocabulary=128"}),
            "mqar: expected at most 64 different tokens, which is what the model has, got 128");
  EXPECT_EQ(error_of("regression", {}), "regression: expected a task for models of the kind language, got one for regression");
  EXPECT_EQ(error_of("mqqar", {}), "unknown task mqqar, did you mean mqar?");
  EXPECT_EQ(error_of("induction", {"task.pairs=2"}), "--set: induction: unknown option pairs");
  EXPECT_EQ(error_of("", {"train.batch=2"}), "--set: expected an option of the task (task.pairs=16), got train.batch=2");
}

}  // namespace
}  // namespace isomer

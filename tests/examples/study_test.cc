// As examples_test.cc, for claims and what is found of them, pages and the explorer.
#include "isomer/study/study.h"

#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "isomer/bench/check.h"
#include "isomer/bench/laws.h"
#include "isomer/bench/layers.h"
#include "isomer/explore/explorer.h"
#include "isomer/explore/mixer_data.h"
#include "isomer/io/text.h"
#include "isomer/report/page.h"
#include "isomer/report/run_data.h"
#include "isomer/report/study_data.h"
#include "isomer/study/lab.h"
#include "isomer/study/probes.h"
#include "isomer/study/trained.h"
#include "isomer/train/run_folder.h"
#include "tests/examples/surroundings.h"

namespace isomer {
namespace {

constexpr const char* kRecall = R"([model]
width = 8
[mixer.all]
heads = 1
[task]
name = "mqar"
vocabulary = 16
length = 8
pairs = 1
[train]
steps = 2
batch = 2
eval_examples = 4
)";

}  // namespace

namespace study {
namespace {

// from isomer/study/trained.h
Claim recall() {
  return trained({.id = "…", .statement = "…", .quantity = "…", .rule = greater("softmax", "linear attention", 0.1)},
                 {.recipe = kRecall,
                  .models = {{.name = "softmax", .set = {"model.layers=softmax*2"}, .rate = 1e-3},
                             {.name = "linear attention", .set = {"model.layers=linear-elu*2"}, .rate = 3e-3}}});
}
// end

TEST(Examples, Claims) {
  const Claim trained = recall();
  ASSERT_TRUE(trained.trained());
  EXPECT_FALSE(trained.cells({}, Cells({})).empty());

  const examples::Printed printed;
  // from isomer/study/claim.h
  for (const Claim* claim : find_claims({})) std::cout << claim->statement << '\n';
  // end
  EXPECT_GT(printed.text().size(), 1000U);
}

TEST(Examples, Cells) {
  Context context(1);
  // from isomer/study/cell.h
  const Cell cell{.recipe = kRecall, .overrides = {"model.layers=gla*2", "train.lr=3e-3"}, .seed = 2};
  const CellResult result = run_cell(cell, context);
  const double value = result.value;  // the task's metric on test examples that chose nothing
  // end
  EXPECT_GE(value, 0);
  EXPECT_LE(value, 1);
  EXPECT_EQ(result.steps, 2);
}

TEST(Examples, Evidence) {
  // from isomer/study/evidence.h
  Evidence found;
  found.add("softmax", 0.99);                  // of seed 1; call it again for the next
  found.put("largest error", 3e-15, 1e-15);    // no seed enters: the value and a bound of its error
  found.add("linear attention", 16, 0.35);     // a point of a series, at x = 16
  found.may_reach("linear attention", 16, 1);  // it was still learning: with more steps, who knows
  // end
  EXPECT_EQ(found.quantity("largest error").interval().high, 4e-15);
  EXPECT_EQ(found.series("linear attention").points.at(0).interval().high, INFINITY);

  Evidence evidence;
  for (const double noise : {-0.001, 0.0, 0.001}) {
    evidence.add("softmax", 0.99 + noise);
    evidence.add("linear attention", 0.35 + noise);
    for (const double x : {1.0, 2.0, 4.0}) evidence.add("error", x, (1 + noise) / x);
  }
  // from isomer/study/rules.h
  const Rule rule = all_of({greater("softmax", "linear attention", 0.1), slope("error", -1.1, -0.9)});
  const Decision decision = rule.decide(evidence);  // holds, fails or undecided, and why
  // end
  EXPECT_EQ(decision.verdict, Verdict::holds) << decision.why;
}

TEST(Examples, Laboratory) {
  Context context(1);
  Rng rng(1);
  const Matrix queries = gaussian(3, 4, rng), keys = gaussian(5, 4, rng);
  // from isomer/study/lab.h
  const Matrix weights = law_weights("attention", {{"causal", "false"}}, queries, keys, context);
  // end
  EXPECT_EQ(weights.columns, 5);
  EXPECT_NEAR(weights(0, 0) + weights(0, 1) + weights(0, 2) + weights(0, 3) + weights(0, 4), 1, 1e-12);
}

TEST(Examples, Probes) {
  Context context(1);
  Recipe recipe;
  recipe.task = "induction";
  recipe.task_settings = {{"length", "64"}};
  recipe.model.width = 8;
  recipe.model.layers = {"mlstm"};
  recipe.mixers["mlstm"] = {{"heads", "1"}};
  Session session(recipe, context);
  // from isomer/study/probes.h
  const double longer = value_with(session, {"task.test_length=256"}, {}, context);
  const double without = value_with(session, {}, {.examples = 256, .silenced = "mlstm"}, context);  // layers that add nothing
  // end
  // Without its only layer the model says the last token again, which is never the answer.
  EXPECT_GT(longer, 0);
  EXPECT_EQ(without, 0);
}

TEST(Examples, Studies) {
  const examples::InNewFolder here;
  const std::vector<std::string> names{"inline.confusion"};
  bool called = false;
  const auto progress = [&](const StudyProgress&) { return called = true; };
  {
    // from isomer/study/study.h
    const std::vector<const Claim*> claims = find_claims(names);
    const std::vector<Outcome> all = run_study(claims, {.budget = {.mode = Mode::quick}, .folder = "results"}, progress);
    // end
    ASSERT_EQ(all.size(), 1U);
    EXPECT_TRUE(called);
    std::filesystem::create_directories("study/results");
    const Result result = all[0].result;
    write_result("study/results", result);
    // from isomer/study/result.h
    write_result("results", result);  // results/inline.confusion.json, whole or not at all
    const std::vector<Result> kept = read_results("study/results");
    // end
    EXPECT_TRUE(std::filesystem::exists("results/inline.confusion.json"));
    EXPECT_EQ(kept.size(), 1U);
  }
  // from isomer/report/study_data.h
  StudyFiles files = read_study("results", "study/results");
  write_text("report.html", page_of(to_json(files)));
  // end
  EXPECT_EQ(files.kept.size(), 1U);
  EXPECT_NE(read_text("report.html").find("inline.confusion"), std::string::npos);
}

}  // namespace
}  // namespace study

namespace {

TEST(Examples, Pages) {
  const examples::InNewFolder here;
  const Json data = Json::object({{"kind", "runs"}, {"title", "a page"}});
  // from isomer/report/page.h
  write_text("report.html", page_of(data));
  // end
  EXPECT_NE(read_text("report.html").find("a page"), std::string::npos);

  for (const char* run : {"runs/a", "runs/b"}) (void)RunFolder::create(run, kRecall);
  // from isomer/report/run_data.h
  const std::vector<std::string> runs{"runs/a", "runs/b"};
  write_text("report.html", page_of(run_data(runs).data));
  // end
  EXPECT_NE(read_text("report.html").find("runs/b"), std::string::npos);
}

TEST(Examples, Explorer) {
  {
    // from isomer/explore/explorer.h
    const Explorer explorer({.preset = "gla"});
    const HttpAnswer answer = explorer.answer({.method = "POST",
                                               .path = "/api/view",
                                               .content_type = "application/json",
                                               .body = R"({"preset": "gla", "text": "the cat sat"})"});
    // end
    EXPECT_EQ(answer.status, 200) << answer.body;
  }
  const int port = 8765;
  const auto answer_to = [&](const HttpRequest& request) {
    // from isomer/explore/http.h
    if (const std::optional<HttpAnswer> refusal = refused(request, port)) return *refusal;
    // end
    return HttpAnswer{};
  };
  EXPECT_EQ(answer_to({.method = "GET", .path = "/", .host = "elsewhere.org:8765"}).status, 403);
  EXPECT_EQ(answer_to({.method = "GET", .path = "/", .host = "localhost:8765"}).status, 200);
  // from isomer/explore/question.h
  const Question question = question_of(R"({
    "preset": "gla", "settings": {"heads": "2"}, "text": "the cat sat", "layer": 0, "head": 1, "token": 2, "other": "dog"
  })");
  // end
  EXPECT_EQ(question.where.token, 2);
  EXPECT_EQ(question.where.other, "dog");
}

TEST(Examples, Looks) {
  Context context(1);
  const std::vector<std::string> words{"the", "cat", "sat"};
  // from isomer/explore/looks.h
  const Sight sight(fresh_subject({.preset = "gla", .words = words}), context);
  const Json answer = view_json(sight, {.head = 1});
  // end
  EXPECT_EQ(answer.at("head").integer(), 1);
  // from isomer/explore/mixer_data.h
  const Json view = mixer_data({.preset = "gla", .words = words_of("the cat sat on the mat")}, context);
  // end
  EXPECT_EQ(view.at("words").items().size(), 6U);
}

TEST(Examples, Benches) {
  const examples::Printed printed;
  Context context(1);
  // It is told to stop as soon as the first case of each begins.
  std::atomic<bool> stop = false;
  const auto show = [&](const std::string& what) {
    std::cout << what << '\n';
    stop = !what.starts_with("checking") && what != "the sgemm peak";
  };
  {
    // from isomer/base/monitor.h
    const Monitor monitor{.progress = [&](const std::string& what) { show(what); }, .stop = &stop};  // an atomic
    const std::vector<CheckRow> rows = check_named({"scan", "gla"}, context, monitor);               // bench/check.h
    // end
    ASSERT_FALSE(rows.empty());
    EXPECT_EQ(rows.back().subject, "scan");
    EXPECT_NE(printed.text().find("check scan"), std::string::npos);
  }
  const Monitor monitor{.progress = show, .stop = &stop};
  stop = false;
  // from isomer/bench/laws.h
  const std::vector<LawRow> rows = bench_laws({.laws = {&find_law("delta")}, .quick = true}, context, monitor).rows;
  // end
  EXPECT_EQ(rows.size(), 1U);
  stop = false;
  // from isomer/bench/check.h
  for (const CheckRow& row : check_named({"delta", "gla"}, context, monitor)) std::cout << to_json(row).dump() << '\n';
  // end
  EXPECT_NE(printed.text().find("\"form\""), std::string::npos) << printed.text();
  stop = false;
  // from isomer/bench/layers.h
  const BenchRows<LayerRow> result = bench_layers({.presets = {"gla"}, .quick = true}, context, monitor);
  // end
  EXPECT_EQ(result.refused, "");
  EXPECT_EQ(result.rows.size(), 1U);
}

}  // namespace
}  // namespace isomer

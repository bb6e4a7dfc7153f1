// The analytic claims, cells, kept cells and results, as files and in a study.
#include "isomer/study/study.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "isomer/io/text.h"
#include "isomer/study/kept.h"
#include "isomer/study/trained.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer::study {
namespace {

using tests::error_of;
using tests::TemporaryFolder;

constexpr const char* kRecipe = R"(
[model]
width = 16
layers = ["softmax"]
mlp = "none"
positions = true
[task]
name = "mqar"
length = 16
pairs = 2
vocabulary = 32
[train]
steps = 20
batch = 8
lr = 1e-2
eval_examples = 32
)";

/// A trained claim of two cells a seed.
Claim small_claim() {
  const auto cell = [](const char* lr, std::uint64_t seed) {
    return Cell{.recipe = kRecipe, .overrides = {std::string("train.lr=") + lr}, .seed = seed};
  };
  return {.id = "test.small",
          .statement = "A small model learns something.",
          .rule = at_least("accuracy", 0),
          .cells =
              [=](const Budget& budget, const Cells&) {
                std::vector<Cell> all;
                for (Index seed = 1; seed <= budget.seeds; ++seed)
                  for (const char* lr : {"1e-2", "1e-3"}) all.push_back(cell(lr, std::uint64_t(seed)));
                return all;
              },
          .read =
              [=](const Budget& budget, const Cells& cells, Evidence& found) {
                for (Index seed = 1; seed <= budget.seeds; ++seed)
                  found.add("accuracy", cells(cell("1e-2", std::uint64_t(seed))).value);
              }};
}

TEST(Sources, IdsAreUniqueAndEveryClaimSaysWhatItIs) {
  std::set<std::string> ids;
  for (const Source& source : sources()) {
    EXPECT_FALSE(source.title.empty() || source.about.empty()) << source.id;
    EXPECT_FALSE(source.claims.empty()) << source.id;
    for (const Claim& claim : source.claims) {
      EXPECT_TRUE(ids.insert(claim.id).second) << claim.id;
      EXPECT_TRUE(claim.figure.caption.ends_with('.')) << claim.id << ": " << claim.figure.caption;
      EXPECT_EQ(claim.source(), source.id);
      EXPECT_FALSE(claim.statement.empty() || claim.quantity.empty() || claim.rule.text.empty()) << claim.id;
      EXPECT_FALSE(claim.published.empty()) << claim.id;
      EXPECT_EQ(claim.trained(), !claim.measure) << claim.id;
    }
  }
}

TEST(Sources, AreFoundByNameAndTheNearestIsNamed) {
  EXPECT_EQ(find_claims(std::vector<std::string>{"inline.confusion"}).size(), 1u);
  EXPECT_GT(find_claims(std::vector<std::string>{"inline"}).size(), 3u);
  EXPECT_EQ(error_of([] { (void)find_claims(std::vector<std::string>{"inline.confuson"}); }),
            "unknown claim inline.confuson, did you mean inline.confusion?");
  for (const Claim* claim : find_claims({})) {
    if (!claim->full_only) continue;
    EXPECT_EQ(error_of([&] { (void)find_claims(std::vector{claim->id}, Mode::quick); }),
              claim->id + " has no quick setting: run it with --full");
  }
}

// Claims whose failure is the finding.
const std::set<std::string> kFails{"selective-rope.feature-scale", "selective-rope.leakage"};

// Claims that time this machine, take long or need pre-trained weights: the study's, not a test's.
const std::set<std::string> kLeftOut{"across.crossover", "across.decoding", "inline.runtime",    "luna.linear-time", "luna.fit",
                                     "luna.frozen",      "luna.bert-cost",  "luna.smollm2-cost", "luna.tabpfn-cost"};

TEST(Study, AnalyticClaimsAreDecided) {
  const TemporaryFolder folder;
  std::vector<const Claim*> analytic;
  for (const Claim* claim : find_claims({}))
    if (!claim->trained() && !kLeftOut.contains(claim->id)) analytic.push_back(claim);
  const std::vector<Outcome> all = run_study(analytic, {.folder = folder.path.string()});
  ASSERT_EQ(all.size(), analytic.size());
  for (const Outcome& outcome : all) {
    EXPECT_EQ(outcome.failure, "") << outcome.claim->id;
    EXPECT_EQ(outcome.result.decision.verdict, kFails.contains(outcome.claim->id) ? Verdict::fails : Verdict::holds)
        << outcome.claim->id << ": " << outcome.result.decision.why;
  }
  EXPECT_EQ(read_results(folder.path.string()).size(), analytic.size());
}

TEST(Cell, IsTheSameAgainAndItsKeyKnowsWhatItDependsOn) {
  Context context(1);
  const Cell cell{.recipe = kRecipe, .seed = 3};
  const CellResult one = run_cell(cell, context), two = run_cell(cell, context);
  EXPECT_EQ(one.value, two.value);
  EXPECT_EQ(one.curve.size(), two.curve.size());
  EXPECT_EQ(one.steps, 20);
  EXPECT_EQ(one.key, key_of(cell, context.isa()));
  Cell other = cell;
  other.seed = 4;
  EXPECT_NE(key_of(other, context.isa()), one.key);
  other = cell, other.overrides = {"train.lr=2e-2"};
  EXPECT_NE(key_of(other, context.isa()), one.key);
  EXPECT_NE(key_of(cell, context.isa() == Isa::scalar ? Isa::avx2 : Isa::scalar), one.key);
  const Probe probe{.name = "nothing", .measure = [](Session&, Context&) { return Numbers{{"one", 1}}; }};
  other = cell, other.probe = &probe;
  EXPECT_NE(key_of(other, context.isa()), one.key);
  EXPECT_EQ(run_cell(other, context).numbers.at("one"), 1);
}

TEST(Cell, ThatDivergesIsAResult) {
  Context context(1);
  const Cell cell{.recipe = kRecipe, .overrides = {"train.lr=1e30", "train.clip=0", "train.schedule=constant"}};
  const CellResult result = run_cell(cell, context);
  EXPECT_TRUE(result.diverged);
  EXPECT_EQ(result.value, 0);
  const CellResult again = parse_cell(to_json(result));
  EXPECT_TRUE(again.diverged && std::isinf(again.loss));
}

TEST(KeptCells, ADamagedFileIsAsNone) {
  const TemporaryFolder folder;
  const KeptCells kept(folder.path.string());
  kept.keep({.key = "abc", .value = 0.5, .curve = {{1, 2.0, 0.25}}, .numbers = {{"x", -3}}});
  const auto found = kept.find("abc");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value, 0.5);
  EXPECT_EQ(found->curve.at(0).value, 0.25);
  EXPECT_EQ(found->numbers.at("x"), -3);
  write_text(folder.path.string() + "/cells/abc.json", "{\"key\": \"abc\"");
  EXPECT_FALSE(kept.find("abc"));
  EXPECT_FALSE(kept.find("another"));
}

TEST(Study, StopsAndGoesOnWithWhatIsKept) {
  const TemporaryFolder folder;
  const Claim claim = small_claim();
  const std::vector<const Claim*> claims{&claim};
  StudyOptions options{.jobs = 1, .folder = folder.path.string()};
  const auto stopped = run_study(claims, options, [](const StudyProgress& now) { return now.cells_done < 2; });
  EXPECT_TRUE(stopped.empty());
  std::size_t kept = 0, cells = 0;
  const auto all = run_study(claims, options, [&](const StudyProgress& now) {
    kept = now.cells_kept, cells = now.cells;
    return true;
  });
  EXPECT_EQ(kept, 2u);
  EXPECT_EQ(cells, 4u);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].result.decision.verdict, Verdict::holds);
  EXPECT_EQ(all[0].result.cells, 6);
  EXPECT_EQ(all[0].result.runs.size(), 6u);
  // On any number of threads the same.
  const TemporaryFolder other;
  options = {.jobs = 2, .folder = other.path.string()};
  EXPECT_EQ(run_study(claims, options).at(0).result.measured.at(0).interval.mean, all[0].result.measured.at(0).interval.mean);
}

TEST(Trained, ChoosesTheRateByValidationAndReportsIt) {
  const TemporaryFolder folder;
  const Claim claim = trained({.id = "test.rates", .statement = "s", .rule = at_least("softmax", 0)},
                              {.recipe = kRecipe,
                               .quick = {"train.steps=10"},
                               .models = {{.name = "softmax", .rate = 3e-4},
                                          {.name = "gla", .set = {"model.layers=gla"}, .x = 4},
                                          {.name = "gla", .set = {"model.layers=gla"}, .x = 8, .full_only = true}}});
  const std::vector<const Claim*> claims{&claim};
  EXPECT_EQ(claim.cells({.mode = Mode::quick, .seeds = 3}, Cells(Isa::scalar)).size(), 6u);
  const Result quick = run_study(claims, {.folder = folder.path.string()}).at(0).result;
  const Result full = run_study(claims, {.budget = {.mode = Mode::full}, .folder = folder.path.string()}).at(0).result;
  const auto value = [](const Result& of, const char* name) {
    return std::ranges::find(of.measured, name, &Result::Measured::name)->interval.mean;
  };
  EXPECT_EQ(value(quick, "learning rate of softmax"), 3e-4);
  EXPECT_GT(value(full, "learning rate of softmax"), 3e-4);
  EXPECT_EQ(quick.series.at(0).points.size(), 1u);
  EXPECT_EQ(full.series.at(0).points.size(), 2u);
}

// Validation is planted: best at 3e-2 with the first seed, and at 1e-2, by more, with the others.
TEST(Trained, SearchesRatesOutwardsUntilTheBestIsInside) {
  const Claim claim = trained({.id = "test.search", .statement = "s", .rule = at_least("softmax", 0)},
                              {.recipe = kRecipe, .models = {{.name = "softmax", .rate = 1e-3}}});
  const Budget budget{.mode = Mode::full, .seeds = 4};
  Cells done(Isa::scalar);
  const auto rate_of = [](const Cell& cell) { return recipe_of(cell).train.lr; };
  std::vector<std::size_t> counts;
  while (counts.size() < 2 || counts.back() != counts[counts.size() - 2]) {
    const std::vector<Cell> cells = claim.cells(budget, done);
    counts.push_back(cells.size());
    for (const Cell& cell : cells) {
      const double best = cell.seed == 1 ? 3e-2 : 1e-2;
      const double weight = cell.seed == 1 ? 1 : 2;
      done.add({.key = key_of(cell, Isa::scalar), .validation = 1 - weight * std::abs(std::log(rate_of(cell) / best))});
    }
  }
  // 1e-3; its neighbours; 1e-2, 3e-2 and 1e-1 one by one; a second seed with the best two; two more with the better one.
  EXPECT_EQ(counts, (std::vector<std::size_t>{1, 3, 4, 5, 6, 8, 10, 10}));
  Evidence found;
  claim.read(budget, done, found);
  EXPECT_EQ(found.quantity("learning rate of softmax").values.at(0), 1e-2);
  EXPECT_EQ(found.quantity("softmax").values.size(), 4u);
}

// Validation is planted: at 1e-3 the first seed alone reaches the goal, at 3e-3 every seed does.
TEST(Trained, SearchesNoFurtherThanARateThatBringsEverySeedToTheGoal) {
  const auto rates_of = [](const char* goal, std::vector<std::size_t>& counts) {
    const Comparison comparison{
        .recipe = kRecipe, .full = {std::string("train.stop_at=") + goal}, .models = {{.name = "softmax", .rate = 1e-3}}};
    const Budget budget{.mode = Mode::full, .seeds = 3};
    Cells done(Isa::scalar);
    while (counts.size() < 2 || counts.back() != counts[counts.size() - 2]) {
      const std::vector<Cell> cells = comparison.cells(budget, done);
      counts.push_back(cells.size());
      for (const Cell& cell : cells) {
        const double lr = recipe_of(cell).train.lr;
        const double value = lr == 3e-3 ? 0.96 : lr == 1e-3 && cell.seed == 1 ? 0.95 : 0.5;
        done.add({.key = key_of(cell, Isa::scalar), .validation = value});
      }
    }
    return comparison.chosen(budget, done).at(0).rate;
  };
  // 1e-3; its other seeds; its neighbours; the other seeds of 3e-3, and no 1e-2.
  std::vector<std::size_t> counts;
  EXPECT_EQ(rates_of("0.95", counts), 3e-3);
  EXPECT_EQ(counts, (std::vector<std::size_t>{1, 3, 5, 7, 7}));
  // Without a goal: 1e-3; its neighbours; 1e-2; a second seed with the best two; a third one with the better.
  counts.clear();
  EXPECT_EQ(rates_of("0", counts), 3e-3);
  EXPECT_EQ(counts, (std::vector<std::size_t>{1, 3, 4, 6, 7, 7}));
}

TEST(Trained, AModelThatWasStillImprovingIsNamedAndNotJudged) {
  const Comparison comparison{.recipe = kRecipe, .models = {{.name = "softmax", .rate = 1e-2}, {.name = "b", .rate = 2e-2}}};
  Claim claim = trained({.id = "test.improving", .statement = "s", .rule = at_most("softmax", 0.5)}, comparison);
  const Budget budget;
  const auto result = [&](bool improving) {
    Cells cells(Isa::scalar);
    for (const Cell& cell : claim.cells(budget, cells))
      cells.add(
          {.key = key_of(cell, Isa::scalar), .value = 0.2, .improving = improving && cell.overrides.back() == "train.lr=0.01"});
    Evidence found;
    claim.read(budget, cells, found);
    return result_of(claim, found);
  };
  EXPECT_EQ(result(false).decision.verdict, Verdict::holds);
  const Result open = result(true);
  EXPECT_EQ(open.decision.verdict, Verdict::undecided);
  EXPECT_EQ(open.decision.why, "softmax is 0.2 [0.2, 1]; still improving when the steps ended: softmax");
  EXPECT_EQ(open.measured.at(0).interval.high, 1);
  Comparison equal = comparison;
  equal.judged = Judged::after_equal_steps;
  claim = trained(std::move(claim), equal);
  EXPECT_EQ(result(true).decision.verdict, Verdict::holds);
}

TEST(Cell, EndsWhenItHasStoppedImproving) {
  Context context(1);
  const Cell cell{.recipe = kRecipe, .overrides = {"train.lr=0", "train.patience=3", "train.eval_every=2", "train.steps=100"}};
  const CellResult result = run_cell(cell, context);
  EXPECT_EQ(result.steps, 8) << "the first look is the best, and three more are none better";
  EXPECT_FALSE(result.improving);
}

TEST(Study, ACellThatCannotBeRunIsNamedAndTheOthersGoOn) {
  const TemporaryFolder folder;
  Claim broken = small_claim(), fine = small_claim();
  broken.id = "test.broken";
  broken.read = [](const Budget&, const Cells& cells, Evidence&) { (void)cells({.recipe = kRecipe, .seed = 99}); };
  const std::vector<const Claim*> claims{&broken, &fine};
  const auto all = run_study(claims, {.folder = folder.path.string()});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].failure, "study: expected the cell to have been run");
  EXPECT_EQ(all[1].failure, "");
  EXPECT_FALSE(std::filesystem::exists(folder.path.string() + "/test.broken.json"));
}

TEST(Study, AClaimWhoseTextIsMissingSaysSo) {
  const TemporaryFolder folder;
  Claim claim = small_claim();
  claim.cells = [](const Budget&, const Cells&) {
    return std::vector{Cell{.recipe = "[task]\nname = \"text\"\npath = \"/nowhere/text\"\n"}};
  };
  const std::vector<const Claim*> claims{&claim};
  const auto all = run_study(claims, {.folder = folder.path.string()});
  EXPECT_EQ(all.at(0).failure, "the claim's recipe:3: cannot read /nowhere/text: No such file or directory");
}

TEST(Results, AClaimThatDoesNotHoldSaysWhyItMay) {
  Evidence found;
  found.put("x", 1);
  found.add("y", 0);
  found.add("y", 1);
  const auto why = [&](const char* quantity, double least) {
    const Claim claim{
        .id = "a.b", .statement = "s", .rule = at_least(quantity, least), .otherwise = "too small", .unclear = "seeds differ"};
    return result_of(claim, found).decision.why;
  };
  EXPECT_EQ(why("x", 0), "x is 1");
  EXPECT_EQ(why("x", 2), "x is 1; too small");
  EXPECT_EQ(why("y", 0.5), "y is 0.5 [0, 1]; seeds differ");
}

// study/results tells of the claims as they are; a changed rule needs another run, other words `isomer study --retell`.
TEST(Results, ThatAreKeptHaveTheWordsOfTheClaims) {
  const std::vector<Result> kept = read_results(ISOMER_SOURCE_DIR "/study/results");
  EXPECT_GE(kept.size(), 75u);
  const std::vector<const Claim*> all = find_claims({});
  for (const Result& result : kept) {
    const auto claim = std::ranges::find(all, result.id, &Claim::id);
    ASSERT_NE(claim, all.end()) << result.id << " is no claim any more";
    EXPECT_EQ(result.rule, (*claim)->rule.text) << result.id << ": run it again";
    if (result.rule != (*claim)->rule.text) continue;
    EXPECT_TRUE(to_json(retold(result, **claim)).dump(1) == to_json(result).dump(1))
        << result.id << ": isomer study --retell --out study/results";
    const bool holds = result.decision.verdict == Verdict::holds;
    EXPECT_EQ(holds, result.reason.empty()) << result.id << " has a reason where it does not hold, and only there";
    for (const Result::Measured& m : result.measured)
      EXPECT_EQ(m.unit == kLearningRate, m.name.starts_with("learning rate of ")) << result.id << " " << m.name;
  }
}

TEST(Results, AreToldAgainWithOtherWordsAndTheSameNumbers) {
  Evidence found;
  found.put("x", 1);
  found.put("learning rate of x", 1e-3);
  Claim claim{.id = "a.b", .statement = "s", .quantity = "q", .rule = at_least("x", 2), .figure = {.y = "accuracy"}};
  claim.otherwise = "too small";
  const Result before = result_of(claim, found);
  EXPECT_EQ(before.decision.why, "x is 1; too small");
  EXPECT_EQ(before.reason, "too small");
  EXPECT_EQ(before.measured.at(0).unit, "accuracy");
  EXPECT_EQ(before.measured.at(1).unit, kLearningRate);
  claim.statement = "t", claim.otherwise = "size: too small";
  const Result after = retold(before, claim);
  EXPECT_EQ(after.statement, "t");
  EXPECT_EQ(after.decision.why, "x is 1; size: too small");
  EXPECT_EQ(after.measured.at(0).interval.mean, 1);
  EXPECT_EQ(to_json(retold(after, claim)).dump(), to_json(after).dump());
  claim.rule = at_least("x", 0);
  EXPECT_EQ(error_of([&] { (void)retold(before, claim); }),
            "a.b: decided by another rule than today's; run it again: isomer study a.b --quick");
}

TEST(Results, RunsThatClaimsShareCountOnce) {
  const auto result = [](const char* source, double seconds, std::map<std::string, double> runs) {
    Result one{.source = source};
    one.seconds = seconds, one.runs = std::move(runs);
    return parse_result(to_json(one).dump(), "test");
  };
  const std::map<std::string, double> seconds = seconds_by_source(
      {result("a", 5, {{"x", 2}, {"y", 3}}), result("a", 3.5, {{"x", 2}, {"z", 1.5}}), result("a", 4, {}),  // analytic
       result("b", 1, {{"w", 1}})});
  EXPECT_EQ(seconds, (std::map<std::string, double>{{"a", 10.5}, {"b", 1}}));
}

TEST(Results, OfAnotherSchemaOrDamagedAreNamed) {
  Evidence found;
  found.put("x", 1);
  Result result = result_of({.id = "a.b", .statement = "s", .rule = at_least("x", 0), .published = {{"n", {}, "w"}}}, found);
  const std::string text = to_json(result).dump(1);
  const Result again = parse_result(text, "a.json");
  EXPECT_EQ(to_json(again).dump(1), text);
  std::string newer = text;
  newer.replace(newer.find("\"schema\": 1"), 11, "\"schema\": 2");
  EXPECT_EQ(error_of([&] { (void)parse_result(newer, "a.json"); }),
            "a.json: results: expected schema 1, got 2, which a newer version of the program wrote");
  EXPECT_TRUE(error_of([&] { (void)parse_result("{", "a.json"); }).starts_with("a.json: expected JSON"));
  EXPECT_TRUE(error_of([] { (void)read_results("/nowhere"); }).starts_with("cannot read /nowhere: "));
}

}  // namespace
}  // namespace isomer::study

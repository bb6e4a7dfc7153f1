// The measurements behind `isomer bench` and `isomer check`, as another program calls them.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "isomer/bench/check.h"
#include "isomer/bench/compare.h"
#include "isomer/bench/laws.h"
#include "isomer/bench/layers.h"
#include "isomer/bench/model.h"
#include "isomer/bench/training.h"
#include "isomer/bench/worker.h"
#include "isomer/models/model_files.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
using tests::error_of;

std::set<std::string> keys_of(const Json& row) {
  std::set<std::string> keys;
  for (const auto& [key, value] : row.members()) keys.insert(key);
  return keys;
}

void expect_keys(const Json& row, const std::vector<std::string>& wanted) {
  const std::set<std::string> keys = keys_of(row);
  for (const std::string& key : wanted) EXPECT_TRUE(keys.contains(key)) << key;
}

const std::vector<std::string> kBenchKeys{"subject",      "direction", "B",          "T",    "threads", "type",
                                          "us_per_token", "gflops",    "peak_share", "peer", "ratio"};

/// Stops the work when it says that it is at something for the n-th time.
struct StopAfter {
  int left;
  std::atomic<bool> stop = false;
  std::vector<std::string> seen = {};

  Monitor monitor() {
    return {.progress =
                [this](const std::string& what) {
                  seen.push_back(what);
                  if (--left == 0) stop = true;
                },
            .stop = &stop};
  }
};

TEST(Bench, LawsStopAfterACase) {
  Context context(1);
  StopAfter after{3};  // the check, the peak, the first case
  const BenchRows<LawRow> result = bench_laws({.laws = {&find_law("scan")}, .quick = true}, context, after.monitor());
  ASSERT_EQ(result.rows.size(), 1u);
  EXPECT_EQ(result.refused, "");
  EXPECT_EQ(after.seen[0], "checking scan before it is timed");
  EXPECT_EQ(after.seen[1], "the sgemm peak");
  const LawRow& row = result.rows[0];
  EXPECT_GT(row.us_per_token, 0);
  EXPECT_GE(row.timing.samples, 3);
  const Json json = to_json(row);
  expect_keys(json, kBenchKeys);
  expect_keys(json, {"form", "H", "K", "V", "state_bytes"});
  EXPECT_EQ(json.at("subject").text(), "scan");
  EXPECT_TRUE(json.at("peer").is_null());
}

TEST(Bench, OneFormOnly) {
  Context context(1);
  StopAfter after{3};
  const BenchRows<LawRow> result =
      bench_laws({.laws = {&find_law("delta")}, .form = Form::reference, .quick = true}, context, after.monitor());
  ASSERT_EQ(result.rows.size(), 1u);
  EXPECT_EQ(result.rows[0].what.form, Form::reference);
}

TEST(Bench, LayersAndTraining) {
  Context context(1);
  StopAfter after{3};
  const BenchRows<LayerRow> layers = bench_layers({.presets = {"gla"}, .quick = true}, context, after.monitor());
  ASSERT_EQ(layers.rows.size(), 1u);
  const LayerRow& row = layers.rows[0];
  EXPECT_EQ(row.what.preset, "gla");
  EXPECT_NEAR(row.product_share + row.law_share + row.outside_share(), 1, 1e-12);
  expect_keys(to_json(row), kBenchKeys);
  StopAfter step{3};
  const BenchRows<TrainingRow> training = bench_training({.presets = {"gla"}, .quick = true}, context, step.monitor());
  ASSERT_EQ(training.rows.size(), 1u);
  EXPECT_GT(training.rows[0].parameters, 0);
  expect_keys(to_json(training.rows[0]), kBenchKeys);
  EXPECT_EQ(error_of([&] { (void)bench_layers({.presets = {"glaa"}}, context, {}); }), "unknown preset glaa, did you mean gla?");
}

TEST(Bench, ThePeakIsTheBestOfThoseAroundEveryPreset) {
  Context context(1);
  int peaks = 0, timed = 0;
  const Monitor monitor{.progress = [&](const std::string& what) { peaks += what == "the sgemm peak" ? 1 : 0; }};
  const SoundPresets sound = each_sound_preset({.presets = {"gla", "softmax"}}, context, monitor, [&](const Preset&) {
    ++timed;
    EXPECT_EQ(peaks, timed);
  });
  EXPECT_EQ(timed, 2);
  EXPECT_EQ(peaks, 3);
  EXPECT_GT(sound.peak, 0);
  EXPECT_EQ(sound.refused, "");
}

TEST(Bench, ChoicesAreComparedWithTheBest) {
  Context context(1);
  StopAfter after{1};
  const std::vector<ChoiceRow> rows = explain({&find_law("delta")}, context, true, after.monitor());
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_GE(rows[0].ratio(), 1);
  EXPECT_FALSE(rows[0].chosen.empty());
  expect_keys(to_json(rows[0]), {"chosen", "best", "us_per_token", "best_us_per_token", "ratio"});
}

TEST(Bench, ACrossoverIsALineWithBothDirections) {
  const BenchCase forward{.subject = "delta", .variant = "plain", .H = 8, .K = 64};
  BenchCase both = forward;
  both.direction = "forward+backward";
  const std::vector<CrossoverRow> rows{{.what = forward, .threads = 2, .at = 0.0, .shortest = 32, .longest = 4096},
                                       {.what = both, .threads = 2, .at = 513.4, .shortest = 32, .longest = 4096}};
  const std::string text = crossover_text(rows);
  EXPECT_EQ(text.substr(text.find('\n') + 1),
            "delta  plain     8x64        2  < 32                                                513\n");
  EXPECT_EQ(to_json(rows[1]).at("crossover").number(), 513.4);
  CrossoverRow never = rows[0];
  never.at.reset();
  EXPECT_TRUE(to_json(never).at("crossover").is_null());
  EXPECT_NE(crossover_text({never}).find("> 4096"), std::string::npos);
}

TEST(Bench, ACrossoverThatIsStoppedHasNoRows) {
  Context context(1);
  StopAfter after{1};
  EXPECT_TRUE(crossover({&find_law("delta")}, context, 8, true, after.monitor()).empty());
}

TEST(Check, NamesLawsAndPresets) {
  Context context(1);
  StopAfter after{1};
  const std::vector<CheckRow> rows = check_named({"scan", "gla"}, context, after.monitor());
  ASSERT_FALSE(rows.empty());
  for (const CheckRow& row : rows) {
    EXPECT_EQ(row.subject, "scan");  // it stops before the preset
    EXPECT_TRUE(row.pass);
  }
  expect_keys(to_json(rows[0]), {"subject", "form", "type", "quantity", "error", "limit", "pass"});
  EXPECT_EQ(error_of([&] { (void)check_named({"scann"}, context, {}); }), "unknown law or preset scann, did you mean scan?");
}

TEST(Worker, RunsAModelOfAFolder) {
  const tests::TemporaryFolder folder;
  const std::string path = (folder.path / "model").string();
  const BenchModel small(bench_config("softmax", {.layers = 2, .width = 32, .vocabulary = 64}));
  write_model_files(path, {.config = to_json(small.model.config()), .weights = small.parameters.tensors()});
  BenchWorker worker;
  const auto ask = [&](const char* weights) {
    const Json request = Json::object({{"op", "model"},
                                       {"case", Json::object({{"model", path}, {"weights", weights}, {"threads", 1}})},
                                       {"prompt", Json::Array{1, 2, 3}},
                                       {"tokens", 4},
                                       {"repeat", 2}});
    return Json::parse(worker.answer(request.dump()), "answer");
  };
  const Json first = ask("float32"), again = ask("float32"), narrow = ask("bf16");
  EXPECT_EQ(first.at("prefill").items().size(), 2u);
  EXPECT_EQ(first.at("decode").items().size(), 8u);
  EXPECT_EQ(first.at("next").items().size(), 5u);
  EXPECT_EQ(first.at("logits").items().size(), 64u);
  EXPECT_GT(first.at("load").number(), 0);
  EXPECT_EQ(again.at("load").number(), 0) << "the model is kept";
  EXPECT_EQ(first.at("next").dump(), again.at("next").dump());
  EXPECT_GT(narrow.at("load").number(), 0);
  EXPECT_LT(narrow.at("bytes").integer(), first.at("bytes").integer());
  EXPECT_GT(first.at("copied_bytes").integer(), first.at("bytes").integer() / 2) << "numbers of 32 bits are copied";
  EXPECT_LT(narrow.at("copied_bytes").integer(), first.at("copied_bytes").integer());
}

TEST(Worker, SaysWhatItCannotDo) {
  BenchWorker worker;
  EXPECT_EQ(worker.answer(R"({"op":"dance"})"), R"({"skip":"unknown op dance"})");
  EXPECT_EQ(worker.answer(R"({"op":"peak"})"), R"({"skip":"expected a member threads, got none"})");
  EXPECT_EQ(worker.answer(R"({"op":"peak","threads":0})"), R"({"skip":"expected threads from 1 to 1024, got 0"})");
  EXPECT_EQ(worker.answer("[]"), R"({"skip":"expected an object, got an array"})");
}

}  // namespace
}  // namespace isomer

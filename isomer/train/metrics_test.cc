#include "isomer/train/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "isomer/io/text.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
using tests::error_of;

struct Metrics : testing::Test {
  tests::TemporaryFolder folder;
  std::string path = folder.path / "metrics.jsonl";
  MetricsFile file{path};

  void add_text(const std::string& text) const { std::ofstream(path, std::ios::app) << text; }
};

constexpr StepLine kStep{.step = 2, .loss = 0.5, .lr = 1e-3, .gradient_norm = 2, .tokens_per_second = 1000, .seconds = 0.25};

TEST_F(Metrics, ALineIsOneObject) {
  EXPECT_EQ(to_json(kStep), R"({"grad_norm":2.0,"loss":0.5,"lr":0.001,"seconds":0.25,"step":2,"tokens_per_s":1000.0})");
  EXPECT_EQ(to_json(EvalLine{.step = 4, .loss = 1.5, .value = 0.75, .metric = Metric::exact, .examples = 8, .seconds = 3}),
            R"({"eval":{"examples":8,"loss":1.5,"metric":"exact","value":0.75},"seconds":3.0,"step":4})");
  EXPECT_EQ(to_json(FailedLine{.step = 5, .reason = "full", .seconds = 4}), R"({"failed":"full","seconds":4.0,"step":5})");
}

TEST_F(Metrics, WhatIsWrittenIsRead) {
  EXPECT_TRUE(file.read().empty());
  file.append(kStep);
  for (const Metric metric :
       {Metric::token_accuracy, Metric::example_accuracy, Metric::exact, Metric::squared_error, Metric::bits_per_token})
    file.append(EvalLine{.step = 3, .loss = 1, .value = 0.5, .metric = metric, .examples = 8, .seconds = 1});
  file.append(FailedLine{.step = 4, .reason = "why", .seconds = 2});
  const std::vector<MetricsLine> lines = file.read();
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(file.size(), 7u);
  const auto& step = std::get<StepLine>(lines[0]);
  EXPECT_EQ(step.step, 2);
  EXPECT_EQ(step.loss, 0.5);
  EXPECT_EQ(step.lr, 1e-3);
  EXPECT_EQ(step.gradient_norm, 2);
  EXPECT_EQ(step.tokens_per_second, 1000);
  EXPECT_EQ(step.seconds, 0.25);
  EXPECT_EQ(std::get<EvalLine>(lines[5]).metric, Metric::bits_per_token);
  EXPECT_EQ(std::get<EvalLine>(lines[5]).examples, 8);
  EXPECT_EQ(std::get<FailedLine>(lines[6]).reason, "why");
  EXPECT_EQ(step_of(lines[6]), 4);
  EXPECT_EQ(seconds_of(lines[6]), 2);
}

TEST_F(Metrics, ALossThatIsNotFiniteIsNull) {
  file.append(StepLine{.step = 1, .loss = std::numeric_limits<double>::quiet_NaN()});
  EXPECT_NE(read_text(path).find("\"loss\":null"), std::string::npos);
  EXPECT_TRUE(std::isnan(std::get<StepLine>(file.read().at(0)).loss));
}

TEST_F(Metrics, ALineThatWasCutOffIsNoLine) {
  file.append(kStep);
  file.append(FailedLine{.step = 3});
  add_text("{\"step\":");
  EXPECT_EQ(file.read().size(), 2u);
  file.keep(1);
  file.append(FailedLine{.step = 9});
  ASSERT_EQ(file.read().size(), 2u);
  EXPECT_EQ(step_of(file.read()[0]), 2);
  EXPECT_EQ(step_of(file.read()[1]), 9);
}

TEST_F(Metrics, AnyOtherLineIsAnErrorWithItsNumber) {
  const auto error_with = [&](const std::string& line) {
    write_text(path, to_json(kStep) + "\n" + line + "\n" + to_json(kStep) + "\n");
    const std::string error = error_of([&] { (void)file.read(); });
    EXPECT_EQ(error.substr(0, path.size()), path);
    return error.substr(path.size());
  };
  EXPECT_TRUE(error_with("{\"step\":").starts_with(":2: line: expected JSON, got a parse error at line 1, column 9"));
  EXPECT_EQ(error_with("[]"), ":2: expected an object, got an array");
  EXPECT_EQ(error_with("{\"step\":1}"), ":2: expected loss, eval or failed, got none of them");
  EXPECT_EQ(error_with("{\"loss\":1}"), ":2: expected a member step, got none");
  EXPECT_EQ(error_with("{\"step\":\"x\",\"loss\":1}"), ":2: expected a whole number, got a string");
  EXPECT_EQ(error_with("{\"step\":1,\"eval\":{\"metric\":\"luck\"}}"), ":2: expected a metric of a task, got luck");
}

TEST_F(Metrics, AFolderThatIsNotThereCannotBeWritten) {
  const std::string nowhere = folder.path / "none" / "metrics.jsonl";
  EXPECT_EQ(error_of([&] { MetricsFile(nowhere).append(kStep); }), "cannot write " + nowhere + ": No such file or directory");
}

}  // namespace
}  // namespace isomer

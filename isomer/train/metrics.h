#pragma once
// metrics.jsonl, the record of a run: one JSON object a line, as they are written and as they are read.
//
//   const MetricsFile file("runs/a/metrics.jsonl");
//   file.append(StepLine{.step = 1, .loss = 4.2});
//   for (const MetricsLine& line : file.read())
//     if (const auto* step = std::get_if<StepLine>(&line)) std::cout << step->loss;
//
// A process that is killed may leave half a line at the end; readers take no notice of it. Anything else that is no line of
// metrics is an Error with the path and the line's number. A number that is not finite is null in the file and NaN here.
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "isomer/base/index.h"
#include "isomer/tasks/task.h"

namespace isomer {

/// {"step", "loss", "lr", "grad_norm", "tokens_per_s", "seconds"}
struct StepLine {
  Index step = 0;
  double loss = 0, lr = 0, gradient_norm = 0, tokens_per_second = 0;
  double seconds = 0;  // of all parts of the run
};

/// {"step", "eval": {"loss", "metric", "value", "examples"}, "seconds"}
struct EvalLine {
  Index step = 0;
  double loss = 0, value = 0;  // of the metric
  Metric metric = Metric::token_accuracy;
  Index examples = 0;
  double seconds = 0;
};

/// {"step", "failed": why, "seconds"}: the last line of a run that failed.
struct FailedLine {
  Index step = 0;
  std::string reason = {};
  double seconds = 0;
};

using MetricsLine = std::variant<StepLine, EvalLine, FailedLine>;

[[nodiscard]] Index step_of(const MetricsLine& line);
[[nodiscard]] double seconds_of(const MetricsLine& line);
/// Without the end of the line.
[[nodiscard]] std::string to_json(const MetricsLine& line);
/// Throws Error "expected …, got …".
[[nodiscard]] MetricsLine parse_metrics_line(const std::string& text);

class MetricsFile {
 public:
  explicit MetricsFile(std::string path) : path_(std::move(path)) {}

  /// Complete on the disk's side of the process: a kill loses at most the line being written. Throws Error "cannot write …".
  void append(const MetricsLine& line) const;
  /// The complete lines; none if there is no file.
  [[nodiscard]] std::vector<MetricsLine> read() const;
  /// How many there are.
  [[nodiscard]] std::size_t size() const;
  /// Keeps the first `count` lines as they are; a line that was cut off goes too.
  void keep(std::size_t count) const;

 private:
  [[nodiscard]] std::vector<std::string> lines() const;
  std::string path_;
};

}  // namespace isomer

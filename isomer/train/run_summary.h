#pragma once
// A run in one row, as `isomer runs` and `isomer sweep` show it.
//
//   for (const std::string& path : runs_below("runs")) std::cout << summary_of(path).value.value_or(0);
#include <optional>
#include <string>
#include <vector>

#include "isomer/io/table.h"
#include "isomer/tasks/task.h"

namespace isomer {

/// How a run stands: `running` as long as a process claims its folder.
enum class RunState { running, finished, failed, stopped };
[[nodiscard]] std::string_view name_of(RunState state);

/// What is not known is left out. Values are those of the last step and of the last evaluation, tokens_per_second is the median.
struct RunSummary {
  std::string run;  // its folder
  std::optional<std::string> task = {}, layers = {};
  std::optional<RunState> state = {};
  std::optional<Index> step = {}, steps = {}, parameters = {};
  std::optional<double> seconds = {}, loss = {}, tokens_per_second = {};
  std::optional<Metric> metric = {};
  std::optional<double> value = {}, test_loss = {};  // of the metric, and its loss
  std::optional<std::string> problem = {};           // why it failed, or why it cannot be read
};
[[nodiscard]] Json to_json(const RunSummary& row);
[[nodiscard]] Cells cells_of(const RunSummary& row);

/// A run that cannot be read is a row too.
[[nodiscard]] RunSummary summary_of(const std::string& path);

/// Every folder with a run in it, at any depth: a sweep has one for each of its runs. Throws Error when `root` is no folder.
[[nodiscard]] std::vector<std::string> runs_below(const std::string& root);

}  // namespace isomer

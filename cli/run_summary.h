#pragma once
// A run in one row, as `runs` and `sweep` print it.
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace isomer::cli {

/// {run, task, layers, state, step, steps, loss, metric, value, test_loss, parameters, tokens_per_s, seconds, problem}; what is
/// not known is left out. Values are those of the last step and the last evaluation, tokens_per_s is the median.
[[nodiscard]] nlohmann::ordered_json summary_of(const std::string& path);

/// A value as it stands in a table; empty where there is none.
[[nodiscard]] std::string cell(const nlohmann::ordered_json& row, const char* key);
/// Without digits behind the point.
[[nodiscard]] std::string whole_cell(const nlohmann::ordered_json& row, const char* key);
/// What goes on with the run in a folder.
[[nodiscard]] std::string resume_command(const std::string& folder);

}  // namespace isomer::cli

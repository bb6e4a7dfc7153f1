#include <algorithm>
#include <cmath>
#include <limits>

#include "isomer/base/format.h"
#include "isomer/train/run_folder.h"
#include "isomer/train/sweep.h"

namespace isomer {

namespace {
SweepRow row_of(const SweepRun& run) {
  SweepRow row{.set = run.point.values, .state = "waiting", .summary = {.run = run.folder}};
  if (RunFolder::is_run(run.folder)) {
    row.summary = summary_of(run.folder);
    row.state = row.summary.state ? std::string(name_of(*row.summary.state)) : "";
  }
  if (!run.problem.empty()) {
    row.state = "failed";
    row.summary.problem = run.problem;
  }
  return row;
}

/// A value of the grid: a number where it is one.
Json value_of(const std::string& text) {
  const std::optional<Json> number = Json::try_parse(text);
  return number && number->is_number() ? *number : Json(text);
}

std::string cell_of(const Json& value) {
  if (value.is_string()) return value.text();
  return value.is_integer() ? value.dump() : text_of(value.number());
}

std::string number_cell(const std::optional<double>& number, const char* format) {
  return number && std::isfinite(*number) ? formatted(format, *number) : "";
}

Cells cells_of(const SweepRow& row, const std::string& metric) {
  const RunSummary& run = row.summary;
  Cells cells;
  for (const auto& [axis, value] : row.set) cells.push_back({axis, cell_of(value_of(value))});
  for (const Cell& cell : Cells{{metric, number_cell(run.value, "%.4g")},
                                {"loss", number_cell(run.loss, "%.4g")},
                                {"parameters", run.parameters ? std::to_string(*run.parameters) : ""},
                                {"tokens/s", number_cell(run.tokens_per_second, "%.0f")},
                                {"seconds", number_cell(run.seconds, "%.1f")},
                                {"state", row.state},
                                {"", run.problem.value_or("")}})
    cells.push_back(cell);
  return cells;
}
}  // namespace

std::vector<SweepRow> sweep_rows(const std::vector<SweepRun>& runs) {
  std::vector<std::pair<double, SweepRow>> ranked;
  for (const SweepRun& run : runs) {
    SweepRow row = row_of(run);
    double rank = std::numeric_limits<double>::infinity();
    if (row.finished() && row.summary.value && std::isfinite(*row.summary.value))
      rank = lower_is_better(run.point.metric) ? *row.summary.value : -*row.summary.value;
    ranked.emplace_back(rank, std::move(row));
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& one) { return one.first; });
  std::vector<SweepRow> rows;
  for (auto& [rank, row] : ranked) rows.push_back(std::move(row));
  return rows;
}

Json to_json(const SweepRow& row) {
  Json set = Json::object(), json = Json::object({{"run", row.summary.run}, {"set", set}});
  for (const auto& [axis, value] : row.set) set.set(axis, value_of(value));
  json.set("set", set);
  const Json summary = to_json(row.summary);
  for (const auto& [key, value] : summary.members()) json.set(key, value);
  if (!row.state.empty()) json.set("state", row.state);
  return json;
}

std::string sweep_text(const std::vector<SweepRow>& rows) {
  std::string metric = "metric";
  for (const SweepRow& row : rows)
    if (row.summary.metric) metric = name_of(*row.summary.metric);
  std::vector<Cells> all;
  for (const SweepRow& row : rows) all.push_back(cells_of(row, metric));
  return rows.empty() ? "" : aligned(all.front(), all);
}

}  // namespace isomer

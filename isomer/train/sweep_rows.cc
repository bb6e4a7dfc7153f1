#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

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

std::string number_cell(const std::optional<double>& number, const char* format) {
  return number && std::isfinite(*number) ? formatted(format, *number) : "";
}

/// What sorts before is better: the metric, then the loss.
using Rank = std::pair<double, double>;
constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr Rank kLast{kNone, kNone};

Rank rank_of(Metric metric, std::optional<double> value, std::optional<double> loss) {
  if (!value || !std::isfinite(*value)) return kLast;
  return {lower_is_better(metric) ? *value : -*value, loss && std::isfinite(*loss) ? *loss : kNone};
}

template <class Row>
std::vector<Row> in_order(std::vector<std::pair<Rank, Row>> ranked) {
  std::ranges::stable_sort(ranked, {}, [](const auto& one) { return one.first; });
  std::vector<Row> rows;
  rows.reserve(ranked.size());
  for (auto& [rank, row] : ranked) rows.push_back(std::move(row));
  return rows;
}

std::optional<double> mean_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

SweepGroup group_of(const GridValues& set, const std::vector<const SweepRow*>& rows) {
  SweepGroup group{.set = set, .runs = Index(rows.size())};
  std::vector<double> values, losses;
  for (const SweepRow* row : rows) {
    const RunSummary& run = row->summary;
    if (run.metric) group.metric = run.metric;
    if (!row->finished() || !run.value) continue;
    values.push_back(*run.value);
    if (run.test_loss) losses.push_back(*run.test_loss);
  }
  group.finished = Index(values.size());
  group.value = mean_of(values);
  group.test_loss = mean_of(losses);
  if (values.size() < 2) return group;
  double squares = 0;
  for (const double value : values) squares += (value - *group.value) * (value - *group.value);
  group.deviation = std::sqrt(squares / double(values.size() - 1));
  return group;
}

Cells cells_of(const SweepRow& row, const std::string& metric) {
  const RunSummary& run = row.summary;
  Cells cells = isomer::cells_of(row.set);
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
  std::vector<std::pair<Rank, SweepRow>> ranked;
  for (const SweepRun& run : runs) {
    SweepRow row = row_of(run);
    const RunSummary& s = row.summary;
    Rank rank = row.finished() ? rank_of(run.point.metric, s.value, s.test_loss) : kLast;
    ranked.emplace_back(rank, std::move(row));
  }
  return in_order(std::move(ranked));
}

std::vector<SweepGroup> sweep_groups(const std::vector<SweepRow>& rows) {
  std::vector<std::pair<GridValues, std::vector<const SweepRow*>>> groups;
  for (const SweepRow& row : rows) {
    GridValues set = row.set;
    std::erase_if(set, [](const auto& axis) { return axis.first == "seed" || axis.first == "train.seed"; });
    auto found = std::ranges::find(groups, set, [](const auto& group) { return group.first; });
    if (found == groups.end()) found = groups.insert(found, {set, {}});
    found->second.push_back(&row);
  }
  std::vector<std::pair<Rank, SweepGroup>> ranked;
  for (const auto& [set, members] : groups) {
    SweepGroup group = group_of(set, members);
    const Rank rank = group.metric ? rank_of(*group.metric, group.value, group.test_loss) : kLast;
    ranked.emplace_back(rank, std::move(group));
  }
  return in_order(std::move(ranked));
}

Json to_json(const SweepGroup& group) {
  Json json = Json::object({{"set", to_json(group.set)}, {"runs", group.runs}, {"finished", group.finished}});
  if (group.metric) json.set("metric", name_of(*group.metric));
  json.set("value", group.value);
  json.set("deviation", group.deviation);
  json.set("test_loss", group.test_loss);
  return json;
}

std::string groups_text(const std::vector<SweepGroup>& groups) {
  std::string metric = "metric";
  for (const SweepGroup& group : groups)
    if (group.metric) metric = name_of(*group.metric);
  std::vector<Cells> all;
  for (const SweepGroup& group : groups) {
    Cells cells = isomer::cells_of(group.set);
    const std::string deviation = number_cell(group.deviation, " ± %.2g");
    cells.push_back({metric, number_cell(group.value, "%.4g") + deviation});
    cells.push_back({"test loss", number_cell(group.test_loss, "%.4g")});
    cells.push_back({"seeds", std::to_string(group.finished) + " of " + std::to_string(group.runs)});
    all.push_back(std::move(cells));
  }
  return groups.empty() ? "" : aligned(all.front(), all);
}

Json to_json(const SweepRow& row) {
  Json json = Json::object({{"run", row.summary.run}, {"set", to_json(row.set)}});
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

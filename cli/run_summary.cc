#include "cli/run_summary.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/models/cost.h"
#include "isomer/train/trainer.h"

namespace isomer::cli {

namespace {
using nlohmann::ordered_json;

void add_recipe(ordered_json& row, const RunFolder& folder) {
  const Recipe recipe = read_recipe(folder.recipe_path());
  row["task"] = recipe.task;
  std::string layers;
  for (const std::string& layer : recipe.model.layers) layers += (layers.empty() ? "" : ",") + layer;
  row["layers"] = layers;
  row["state"] = name_of(state_of(folder));
  row["steps"] = recipe.train.steps;
}

void add_metrics(ordered_json& row, const RunFolder& folder) {
  std::vector<double> rates;
  for (const MetricsLine& line : folder.metrics().read()) {
    row["step"] = step_of(line);
    row["seconds"] = seconds_of(line);
    if (const auto* step = std::get_if<StepLine>(&line)) {
      row["loss"] = step->loss;
      if (std::isfinite(step->tokens_per_second)) rates.push_back(step->tokens_per_second);
    } else if (const auto* eval = std::get_if<EvalLine>(&line)) {
      row["metric"] = name_of(eval->metric);
      row["value"] = eval->value;
      row["test_loss"] = eval->loss;
    } else {
      row["problem"] = std::get<FailedLine>(line).reason;
    }
  }
  if (rates.empty()) return;
  std::ranges::nth_element(rates, rates.begin() + std::ptrdiff_t(rates.size() / 2));
  row["tokens_per_s"] = rates[rates.size() / 2];
}

void add_model(ordered_json& row, const RunFolder& folder) {
  const std::string text = folder.latest_text("config.json");
  if (text.empty()) return;
  const ModelConfig config = model_config(text, "config.json");
  row["parameters"] = cost_of(config, std::max<Index>(config.length, 1)).parameters;
}
}  // namespace

ordered_json summary_of(const std::string& path) {
  ordered_json row{{"run", path}};
  try {
    const RunFolder folder = RunFolder::open(path);
    add_recipe(row, folder);
    add_metrics(row, folder);
    add_model(row, folder);
  } catch (const Error& problem) {
    // A run that cannot be read is a row too: the others are of interest all the same.
    row["problem"] = problem.what();
  }
  return row;
}

std::string cell(const ordered_json& row, const char* key) {
  if (!row.contains(key) || row[key].is_null()) return "";
  if (row[key].is_string()) return row[key].get<std::string>();
  return row[key].is_number_float() ? text_of(row[key].get<double>()) : row[key].dump();
}

std::string whole_cell(const ordered_json& row, const char* key) {
  return row.contains(key) ? formatted("%.0f", row[key].get<double>()) : "";
}

std::string resume_command(const std::string& folder) {
  return "isomer train " + folder + "/recipe.toml --out " + folder + " --resume";
}

}  // namespace isomer::cli

// isomer runs: a table of runs with what they ended with.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/train/recipe.h"
#include "isomer/train/run_folder.h"

namespace isomer::cli {

namespace {
using nlohmann::ordered_json;

ordered_json row_of(const std::string& path) {
  const RunFolder folder = RunFolder::open(path);
  ordered_json row{{"run", path}};
  try {
    const Recipe recipe = read_recipe(folder.recipe_path());
    row["task"] = recipe.task;
    std::string layers;
    for (const std::string& layer : recipe.model.layers) layers += (layers.empty() ? "" : ",") + layer;
    row["layers"] = layers;
    row["steps"] = recipe.train.steps;
  } catch (const Error& problem) {
    row["problem"] = problem.what();
    return row;
  }
  for (const std::string& text : folder.metrics()) {
    const ordered_json line = ordered_json::parse(text, nullptr, false);
    if (line.is_discarded()) continue;
    row["step"] = line.value("step", 0);
    row["seconds"] = line.value("seconds", 0.0);
    if (line.contains("loss")) row["loss"] = line["loss"];
    if (line.contains("tokens_per_s")) row["tokens_per_s"] = line["tokens_per_s"];
    if (!line.contains("eval")) continue;
    row["metric"] = line["eval"].value("metric", "");
    row["value"] = line["eval"].value("value", ordered_json());
  }
  return row;
}

std::string cell(const ordered_json& row, const char* key) {
  if (!row.contains(key) || row[key].is_null()) return "";
  if (row[key].is_string()) return row[key].get<std::string>();
  return row[key].is_number_float() ? formatted("%.4g", row[key].get<double>()) : row[key].dump();
}

int runs_request(const std::string& root, bool json) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(root)) throw Error(root + ": expected a folder with runs");
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(root, fs::directory_options::skip_permission_denied))
    if (entry.path().filename() == "recipe.toml") paths.push_back(entry.path().parent_path().string());
  std::sort(paths.begin(), paths.end());
  auto rows = ordered_json::array();
  for (const std::string& path : paths) rows.push_back(row_of(path));
  if (json) {
    const Context context(1);
    print_json(context, rows);
    return kDone;
  }
  Table table({"run", "task", "layers", "step", "of", "loss", "metric", "value", "tokens/s", "seconds", ""});
  for (const ordered_json& row : rows)
    table.add({cell(row, "run"), cell(row, "task"), cell(row, "layers"), cell(row, "step"), cell(row, "steps"), cell(row, "loss"),
               cell(row, "metric"), cell(row, "value"), cell(row, "tokens_per_s"), cell(row, "seconds"), cell(row, "problem")});
  table.print();
  return kDone;
}
}  // namespace

Command runs_command(CLI::App& app) {
  struct Request {
    std::string root = "runs";
    bool json = false;
  };
  auto request = std::make_shared<Request>();
  app.add_option("folder", request->root, "Where to look [runs]");
  app.add_flag("--json", request->json, "One JSON object instead of a table");
  app.footer("Example:\n  isomer runs");
  return [request] { return runs_request(request->root, request->json); };
}

}  // namespace isomer::cli

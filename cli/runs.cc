// isomer runs: a table of runs with how they stand and what they ended with.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/report.h"
#include "cli/run_summary.h"
#include "isomer/base/error.h"
#include "isomer/train/run_folder.h"

namespace isomer::cli {

namespace {
using nlohmann::ordered_json;

/// Every folder below with a run in it, at any depth: a sweep has one for each of its runs.
std::vector<std::string> runs_below(const std::string& root) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  constexpr auto kOptions = fs::directory_options::skip_permission_denied;
  if (RunFolder::is_run(root)) paths.push_back(root);
  for (auto entry = fs::recursive_directory_iterator(root, kOptions); entry != fs::recursive_directory_iterator(); ++entry) {
    // Folders in there come and go while a run trains.
    if (entry->path().filename() == "checkpoints") entry.disable_recursion_pending();
    if (entry.depth() > 0 && entry->path().filename() == "recipe.toml") paths.push_back(entry->path().parent_path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

int runs_request(const std::string& root, bool json) {
  if (!std::filesystem::is_directory(root)) throw Error(root + ": expected a folder with runs, got no folder");
  auto rows = ordered_json::array();
  for (const std::string& path : runs_below(root)) rows.push_back(summary_of(path));
  if (json) {
    const Context context(1);
    print_json(context, rows);
    return kDone;
  }
  Table table({"run", "task", "layers", "state", "step", "of", "loss", "metric", "value", "tokens/s", "time", ""});
  for (const ordered_json& row : rows)
    table.add({cell(row, "run"), cell(row, "task"), cell(row, "layers"), cell(row, "state"), cell(row, "step"),
               cell(row, "steps"), cell(row, "loss"), cell(row, "metric"), cell(row, "value"), whole_cell(row, "tokens_per_s"),
               row.contains("seconds") ? clock_of(row["seconds"].get<double>()) : "", cell(row, "problem")});
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
  app.add_option("folder", request->root, "Where to look, at any depth [runs]");
  app.add_flag("--json", request->json, "One JSON object instead of a table");
  app.footer("Example:\n  isomer runs");
  return [request] { return runs_request(request->root, request->json); };
}

}  // namespace isomer::cli

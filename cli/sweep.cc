// isomer sweep: every combination of a grid trained as a run of its own, some at a time.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command.h"
#include "cli/report.h"
#include "cli/run_summary.h"
#include "cli/sweep_runs.h"
#include "isomer/base/error.h"
#include "isomer/io/text.h"
#include "isomer/train/run_folder.h"

namespace isomer::cli {

namespace {
using nlohmann::ordered_json;

struct Request {
  std::string recipe, out;
  std::vector<std::string> grid, settings;
  int jobs = 1, threads = 0;
  bool tensorboard = false, json = false;
};

/// A word as a shell takes it.
std::string quoted(const std::string& word) {
  if (word.find_first_of(" \t\n\"'\\$`*?[](){}<>|&;#~!") == std::string::npos && !word.empty()) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::string command_of(const Request& request) {
  std::string text = "isomer sweep " + quoted(request.recipe);
  for (const std::string& axis : request.grid) text += " --grid " + quoted(axis);
  for (const std::string& setting : request.settings) text += " --set " + quoted(setting);
  text += " --jobs " + std::to_string(request.jobs);
  if (request.threads > 0) text += " --threads " + std::to_string(request.threads);
  if (request.tensorboard) text += " --tensorboard";
  return text + " --out " + quoted(request.out);
}

/// A value of the grid: a number where it is one.
ordered_json value_of(const std::string& text) {
  ordered_json number = ordered_json::parse(text, nullptr, false);
  return number.is_number() ? number : ordered_json(text);
}

ordered_json row_of(const SweepRun& run) {
  ordered_json set = ordered_json::object();
  for (const auto& [axis, value] : run.point.values) set[axis] = value_of(value);
  ordered_json row{{"run", run.folder}, {"set", set}};
  if (!RunFolder::is_run(run.folder)) {
    row["state"] = run.problem.empty() ? "waiting" : "failed";
  } else {
    row.update(summary_of(run.folder));
  }
  if (!run.problem.empty()) {
    row["state"] = "failed";
    row["problem"] = run.problem;
  }
  return row;
}

/// The best first; what has no value comes last, in the order of the grid.
ordered_json rows_of(const std::vector<SweepRun>& runs) {
  std::vector<std::pair<double, ordered_json>> ranked;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  for (const SweepRun& run : runs) {
    ordered_json row = row_of(run);
    const bool known = row["state"] == "finished" && row.contains("value") && row["value"].is_number();
    const double value = known ? row["value"].get<double>() : kNone;
    ranked.emplace_back(known && !lower_is_better(run.point.metric) ? -value : value, std::move(row));
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& one) { return one.first; });
  ordered_json rows = ordered_json::array();
  for (auto& [rank, row] : ranked) rows.push_back(std::move(row));
  return rows;
}

void write_record(const Request& request, const ordered_json& rows) {
  const Context context(1);
  ordered_json all = table_json(context, rows);
  all["command"] = command_of(request);
  write_text(request.out + "/sweep.json", all.dump(1) + "\n");
}

void print_table(const ordered_json& rows) {
  std::vector<std::string> head;
  for (const auto& [axis, value] : rows[0]["set"].items()) head.push_back(axis);
  std::string metric = "metric";
  for (const ordered_json& row : rows) metric = row.value("metric", metric);
  for (const std::string& name : {metric, std::string("loss"), std::string("parameters"), std::string("tokens/s"),
                                  std::string("seconds"), std::string("state"), std::string()})
    head.push_back(name);
  Table table(head);
  for (const ordered_json& row : rows) {
    std::vector<std::string> cells;
    for (const auto& [axis, value] : row["set"].items()) cells.push_back(cell(row["set"], axis.c_str()));
    for (const char* key : {"value", "loss", "parameters"}) cells.push_back(cell(row, key));
    cells.push_back(whole_cell(row, "tokens_per_s"));
    cells.push_back(row.contains("seconds") ? formatted("%.1f", row["seconds"].get<double>()) : "");
    for (const char* key : {"state", "problem"}) cells.push_back(cell(row, key));
    table.add(cells);
  }
  table.print();
}

int sweep_request(Request request) {
  namespace fs = std::filesystem;
  if (request.out.empty()) request.out = "runs/" + fs::path(request.recipe).stem().string() + "-sweep";
  std::vector<SweepRun> runs = sweep_runs(grid_of(parse_grid(request.grid), request.recipe, request.settings), request.out);
  std::error_code problem;
  fs::create_directories(request.out, problem);
  if (problem) throw RunFailed("cannot write " + request.out + ": " + problem.message());
  const int cores = request.threads > 0 ? request.threads : std::max(1, int(std::thread::hardware_concurrency()));
  const SweepOptions options{.jobs = request.jobs, .threads = cores, .tensorboard = request.tensorboard};
  const bool stopped = train_all(runs, options, [&] { write_record(request, rows_of(runs)); });
  const ordered_json rows = rows_of(runs);
  write_record(request, rows);
  if (request.json) {
    print_json(Context(1), rows);
  } else {
    print_table(rows);
  }
  if (stopped) std::cerr << "stopped; go on with: " << command_of(request) << "\n";
  const bool all = std::ranges::all_of(rows, [](const ordered_json& row) { return row["state"] == "finished"; });
  return all ? kDone : kFailed;
}
}  // namespace

Command sweep_command(CLI::App& app) {
  auto request = std::make_shared<Request>();
  app.add_option("recipe", request->recipe, "TOML file with model, task and training")->required();
  app.add_option("--grid", request->grid,
                 "KEY=VALUE,VALUE,… of the recipe; may be repeated, also within one: lr=1e-3,3e-3,seed=1,2. "
                 "mixer sets the preset of every layer; '+' goes between layers: layers=gla+softmax,mlstm")
      ->required()
      ->type_name("AXIS")
      ->allow_extra_args(false);
  add_set(app, request->settings, "Override a key of the recipe for every run; may be repeated");
  app.add_option("--jobs", request->jobs, "Runs at a time [1]")->check(CLI::Range(1, 1024))->type_name("N");
  add_threads(app, request->threads, "Threads of all runs together");
  app.add_option("--out", request->out, "Folder of the runs and of sweep.json [runs/NAME-sweep]")->type_name("DIR");
  app.add_flag("--tensorboard", request->tensorboard, "Write event files for TensorBoard too");
  app.add_flag("--json", request->json, "One JSON object instead of a table");
  app.footer(
      "What is there already is not trained again: the same command goes on after a stop.\n\n"
      "Example:\n  isomer sweep recipes/mqar.toml --grid mixer=softmax,gla,lr=1e-3,3e-3 --jobs 2");
  return [request] { return sweep_request(*request); };
}

}  // namespace isomer::cli

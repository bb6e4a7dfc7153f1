#include "isomer/train/run_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "isomer/base/error.h"
#include "isomer/base/format.h"
#include "isomer/io/files.h"
#include "isomer/models/cost.h"
#include "isomer/train/trainer.h"

namespace isomer {

namespace {
void add_recipe(RunSummary& row, const RunFolder& folder) {
  const Recipe recipe = read_recipe(folder.recipe_path());
  row.task = recipe.task;
  std::string layers;
  for (const std::string& layer : recipe.model.layers) layers += (layers.empty() ? "" : ",") + layer;
  row.layers = layers;
  row.state = state_of(folder);
  row.steps = recipe.train.steps;
}

void add_metrics(RunSummary& row, const RunFolder& folder) {
  std::vector<double> rates;
  for (const MetricsLine& line : folder.metrics().read()) {
    row.step = step_of(line);
    row.seconds = seconds_of(line);
    if (const auto* step = std::get_if<StepLine>(&line)) {
      row.loss = step->loss;
      if (std::isfinite(step->tokens_per_second)) rates.push_back(step->tokens_per_second);
    } else if (const auto* eval = std::get_if<EvalLine>(&line)) {
      row.metric = eval->metric;
      row.value = eval->value;
      row.test_loss = eval->loss;
    } else {
      row.problem = std::get<FailedLine>(line).reason;
    }
  }
  if (rates.empty()) return;
  std::ranges::nth_element(rates, rates.begin() + std::ptrdiff_t(rates.size() / 2));
  row.tokens_per_second = rates[rates.size() / 2];
}

void add_model(RunSummary& row, const RunFolder& folder) {
  const std::string text = folder.latest_text("config.json");
  if (text.empty()) return;
  const ModelConfig config = model_config(text, "config.json");
  row.parameters = cost_of(config, std::max<Index>(config.length, 1)).parameters;
}

std::string number_cell(const std::optional<double>& number) { return number && std::isfinite(*number) ? text_of(*number) : ""; }
std::string number_cell(const std::optional<Index>& number) { return number ? std::to_string(*number) : ""; }
}  // namespace

std::string_view name_of(RunState state) {
  constexpr std::array<std::string_view, 4> kNames{"running", "finished", "failed", "stopped"};
  return kNames[std::size_t(state)];
}

RunSummary summary_of(const std::string& path) {
  RunSummary row{.run = path};
  try {
    const RunFolder folder = RunFolder::open(path);
    add_recipe(row, folder);
    add_metrics(row, folder);
    add_model(row, folder);
  } catch (const Error& problem) {
    // The others are of interest all the same.
    row.problem = problem.what();
  }
  return row;
}

Json to_json(const RunSummary& row) {
  Json json = Json::object({{"run", row.run}});
  const auto add = [&](const char* key, const auto& value) {
    if (value) json.set(key, *value);
  };
  add("task", row.task);
  add("layers", row.layers);
  if (row.state) json.set("state", name_of(*row.state));
  add("steps", row.steps);
  add("step", row.step);
  add("seconds", row.seconds);
  add("loss", row.loss);
  if (row.metric) json.set("metric", name_of(*row.metric));
  add("value", row.value);
  add("test_loss", row.test_loss);
  add("problem", row.problem);
  add("tokens_per_s", row.tokens_per_second);
  add("parameters", row.parameters);
  return json;
}

Cells cells_of(const RunSummary& row) {
  return {{"run", row.run},
          {"task", row.task.value_or("")},
          {"layers", row.layers.value_or("")},
          {"state", row.state ? std::string(name_of(*row.state)) : ""},
          {"step", number_cell(row.step)},
          {"of", number_cell(row.steps)},
          {"loss", number_cell(row.loss)},
          {"metric", row.metric ? std::string(name_of(*row.metric)) : ""},
          {"value", number_cell(row.value)},
          {"tokens/s", row.tokens_per_second ? formatted("%.0f", *row.tokens_per_second) : ""},
          {"time", row.seconds ? clock_of(*row.seconds) : ""},
          {"", row.problem.value_or("")}};
}

std::vector<std::string> runs_below(const std::string& root) {
  namespace fs = std::filesystem;
  if (!is_folder(root)) throw Error(root + ": expected a folder with runs, got no folder");
  std::vector<std::string> paths;
  constexpr auto kOptions = fs::directory_options::skip_permission_denied;
  if (RunFolder::is_run(root)) paths.push_back(root);
  std::error_code problem;
  fs::recursive_directory_iterator entry(root, kOptions, problem);
  for (; !problem && entry != fs::recursive_directory_iterator(); entry.increment(problem)) {
    // Folders in there come and go while a run trains.
    if (entry->path().filename() == "checkpoints") entry.disable_recursion_pending();
    if (entry.depth() > 0 && entry->path().filename() == "recipe.toml") paths.push_back(entry->path().parent_path().string());
  }
  if (problem) throw Error("cannot read " + root + ": " + problem.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace isomer

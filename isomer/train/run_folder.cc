#include "isomer/train/run_folder.h"

#include <algorithm>
#include <filesystem>

#include "isomer/base/error.h"
#include "isomer/io/atomic_file.h"
#include "isomer/io/files.h"
#include "isomer/io/json.h"
#include "isomer/io/safetensors.h"
#include "isomer/io/text.h"

namespace isomer {

namespace {
namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const std::string& path, const std::string& reason) {
  throw Error("cannot write " + path + ": " + reason);
}

[[noreturn]] void is_taken(const std::string& path) {
  throw Error(path +
              ": expected a folder without a run, got one with recipe.toml; go on with it by isomer train --resume or take "
              "another --out");
}

void make_folder(const std::string& path) {
  std::error_code problem;
  fs::create_directories(path, problem);
  if (problem) cannot_write(path, problem.message());
}
}  // namespace

bool RunFolder::is_run(const std::string& path) { return is_there(RunFolder(path).recipe_path()); }

void RunFolder::expect_none(const std::string& path) {
  if (is_run(path)) is_taken(path);
}

RunFolder RunFolder::create(const std::string& path, const std::string& recipe) {
  expect_none(path);
  RunFolder folder(path);
  make_folder(path + "/checkpoints");
  if (!write_new_text(folder.recipe_path(), recipe)) is_taken(path);
  return folder;
}

RunFolder RunFolder::open(const std::string& path) {
  if (!is_run(path)) throw Error(path + ": expected the folder of a run (with recipe.toml), got none");
  return RunFolder(path);
}

FileLock RunFolder::claim() const {
  std::optional<FileLock> lock = FileLock::take(recipe_path());
  if (!lock) throw Error(path_ + ": expected a run that nobody trains, got one that another process is training");
  return std::move(*lock);
}

std::vector<Index> RunFolder::checkpoints() const { return checkpoint_steps(path_); }

void RunFolder::point(const std::string& name, Index step) const {
  const std::string link = path_ + "/checkpoints/" + name, fresh = link + ".new";
  std::error_code problem;
  fs::remove(fresh, problem);
  fs::create_directory_symlink("step-" + std::to_string(step), fresh, problem);
  if (!problem) fs::rename(fresh, link, problem);
  if (problem) cannot_write(link, problem.message());
}

void RunFolder::save(const Checkpoint& checkpoint, Index keep) const {
  const std::string folder = path_ + "/checkpoints", target = checkpoint_folder(path_, checkpoint.step),
                    temporary = folder + "/writing-" + std::to_string(checkpoint.step);
  std::error_code problem;
  fs::remove_all(temporary, problem);
  try {
    write_model_files(temporary, checkpoint.model);
    write_safetensors(temporary + "/optimizer.safetensors", checkpoint.optimiser);
    write_text(temporary + "/state.json", checkpoint.state);
    sync_folder(temporary);
    fs::remove_all(target, problem);
    fs::rename(temporary, target, problem);
    if (problem) cannot_write(target, problem.message());
  } catch (const Error&) {
    fs::remove_all(temporary, problem);
    throw;
  }
  sync_folder(folder);
  point("latest", checkpoint.step);
  sync_folder(folder);
  const std::vector<Index> steps = checkpoints();
  for (std::size_t i = 0; i + std::size_t(keep) < steps.size(); ++i)
    if (steps[i] != checkpoint.step && steps[i] != best_step()) fs::remove_all(checkpoint_folder(path_, steps[i]), problem);
}

void RunFolder::tidy() const {
  std::error_code none;
  std::vector<fs::path> halves;
  for (const auto& entry : fs::directory_iterator(path_ + "/checkpoints", none))
    if (entry.path().filename().string().starts_with("writing-")) halves.push_back(entry.path());
  for (const fs::path& half : halves) fs::remove_all(half, none);
  if (has_checkpoint()) point("latest", latest_step());
}

bool RunFolder::has_checkpoint() const { return !checkpoints().empty(); }

Index RunFolder::latest_step() const {
  const std::vector<Index> steps = checkpoints();
  if (steps.empty()) throw Error(path_ + ": expected a run with a checkpoint, got none");
  return steps.back();
}

std::string RunFolder::latest_text(const std::string& file) const {
  const std::vector<Index> steps = checkpoints();
  return steps.empty() ? "" : read_text(checkpoint_folder(path_, steps.back()) + "/" + file);
}

void RunFolder::mark_best(Index step) const { point("best", step); }

std::optional<Index> RunFolder::best_step() const {
  return is_there(path_ + "/checkpoints/best") ? run_path(path_ + "@best").step : std::nullopt;
}

void RunFolder::set_aside(Index step) const {
  const std::string aside = path_ + "/checkpoints/damaged-" + std::to_string(step);
  std::error_code problem;
  fs::remove_all(aside, problem);
  fs::rename(checkpoint_folder(path_, step), aside, problem);
  if (problem) cannot_write(aside, problem.message());
}

Checkpoint RunFolder::load_model(std::optional<Index> step) const {
  const Index at = step ? *step : latest_step();
  const std::string from = checkpoint_folder(path_, at);
  Checkpoint checkpoint{.step = at, .model = read_model_files(from), .optimiser = {}, .state = {}, .folder = from};
  checkpoint.state = read_text(checkpoint.file("state.json"));
  (void)Json::parse(checkpoint.model.config, checkpoint.file("config.json"));
  (void)Json::parse(checkpoint.state, checkpoint.file("state.json"));
  return checkpoint;
}

Checkpoint RunFolder::load(Index step) const {
  Checkpoint checkpoint = load_model(step);
  const std::string optimiser = checkpoint.file("optimizer.safetensors");
  checkpoint.optimiser = read_safetensors(optimiser);
  require_finite(optimiser, views_of(checkpoint.optimiser), "moments of the optimiser");
  return checkpoint;
}

Checkpoint RunFolder::load_latest() const { return load(latest_step()); }

}  // namespace isomer

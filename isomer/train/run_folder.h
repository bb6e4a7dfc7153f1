#pragma once
// The folder of a run: the resolved recipe, one line of metrics after the other, checkpoints.
//
//   DIR/recipe.toml
//   DIR/start.json                                                 # with train.start: which weights were taken from where
//   DIR/metrics.jsonl
//   DIR/checkpoints/step-120/{model.safetensors, config.json, tokenizer.json, optimizer.safetensors, state.json}
//   DIR/checkpoints/latest -> step-120
//   DIR/checkpoints/best -> step-90                               # with train.keep_best
//
//   RunFolder folder = RunFolder::create("runs/a", to_toml(recipe));
//   folder.metrics().append(StepLine{.step = 1, .loss = 4.2});
//   folder.save(checkpoint, keep);
//   const Checkpoint last = folder.load_latest();               // to resume: metrics after its step are dropped
//
// A checkpoint appears whole or not at all, whatever happens while it is written; one that could not be written leaves the last
// good one as it was. Only the newest `keep` stay, and the best.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "isomer/base/error.h"
#include "isomer/base/index.h"
#include "isomer/base/tensor.h"
#include "isomer/io/file_lock.h"
#include "isomer/models/model_files.h"
#include "isomer/train/metrics.h"

namespace isomer {

/// Everything a run needs to go on exactly.
struct Checkpoint {
  Index step = 0;
  ModelFiles model;
  Tensors optimiser;
  std::string state;        // JSON: where the run stood
  std::string folder = {};  // that it was read from

  /// The path of one of its files, for messages.
  [[nodiscard]] std::string file(const std::string& name) const { return folder.empty() ? name : folder + "/" + name; }
};

/// A checkpoint that cannot be read, though it was whole once.
class DamagedCheckpoint : public Error {
 public:
  using Error::Error;
};

/// A checkpoint that is whole, of another model than the recipe's.
class OtherModel : public Error {
 public:
  using Error::Error;
};

class RunFolder {
 public:
  [[nodiscard]] static bool is_run(const std::string& path);
  /// Throws Error when the folder holds a run already.
  static void expect_none(const std::string& path);
  /// The same, and when it cannot be written. Of several that begin one at once, one does.
  [[nodiscard]] static RunFolder create(const std::string& path, const std::string& recipe);
  /// Throws Error when there is no run in it.
  [[nodiscard]] static RunFolder open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string recipe_path() const { return path_ + "/recipe.toml"; }
  [[nodiscard]] std::string metrics_path() const { return path_ + "/metrics.jsonl"; }
  [[nodiscard]] std::string start_path() const { return path_ + "/start.json"; }
  [[nodiscard]] MetricsFile metrics() const { return MetricsFile(metrics_path()); }

  /// For the one who trains in it. Throws Error when another process does.
  [[nodiscard]] FileLock claim() const;
  [[nodiscard]] bool is_claimed() const { return FileLock::is_held(recipe_path()); }

  /// Throws Error "cannot write …"; then the checkpoints are as they were.
  void save(const Checkpoint& checkpoint, Index keep) const;
  /// From now on the checkpoint of this step is the best one, which stays.
  void mark_best(Index step) const;
  [[nodiscard]] std::optional<Index> best_step() const;
  /// A damaged checkpoint is none from now on: it is called damaged-N, for whoever wants to look at it.
  void set_aside(Index step) const;
  /// Ends what a kill interrupted: a checkpoint that was half written goes, and `latest` is the last one. For the one who trains.
  void tidy() const;
  [[nodiscard]] bool has_checkpoint() const;
  /// Throws Error for a damaged one, with its path.
  [[nodiscard]] Checkpoint load_latest() const;
  [[nodiscard]] Checkpoint load(Index step) const;
  /// Without the optimiser, which has twice the numbers of the model and is needed for training alone. Without a step: the last.
  [[nodiscard]] Checkpoint load_model(std::optional<Index> step = {}) const;
  /// "config.json" or "state.json" of the last checkpoint, without its tensors; empty if there is none.
  [[nodiscard]] std::string latest_text(const std::string& file) const;
  /// Throws Error when there is none.
  [[nodiscard]] Index latest_step() const;
  /// Their steps, ascending.
  [[nodiscard]] std::vector<Index> checkpoints() const;

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  void point(const std::string& name, Index step) const;
  std::string path_;
};

}  // namespace isomer

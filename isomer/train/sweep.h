#pragma once
// A sweep: every point of a grid trained as a run of its own, some at a time, and the table of what came out.
//
//   std::vector<SweepRun> runs = sweep_runs(grid_of(parse_grid({"lr=1e-3,3e-3"}), "recipes/mqar.toml", {}), "runs/mqar-sweep");
//   const bool stopped = train_all(runs, {.jobs = 2, .threads = 2, .program = "/usr/bin/isomer"}, {}, stop);
//   std::cout << sweep_text(sweep_rows(runs));                          // the best first
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "isomer/train/grid.h"
#include "isomer/train/run_summary.h"

namespace isomer {

struct SweepRun {
  GridPoint point;
  std::string folder;
  std::string problem = {};  // how it failed, other than its metrics say
};

/// The runs below `out`. Throws Error when one of the folders holds a run of another recipe.
[[nodiscard]] std::vector<SweepRun> sweep_runs(const std::vector<GridPoint>& points, const std::string& out);

struct SweepOptions {
  int jobs = 1;     // at a time
  int threads = 1;  // of all of them together
  bool tensorboard = false;
  /// The path of `isomer`: each run is a process of its own, so that one that crashes takes no other with it; what it prints goes
  /// into log.txt beside its metrics. Empty: they are trained in this process, one after the other.
  std::string program = {};
};

struct SweepProgress {
  struct Busy {
    std::string name;
    Index step, steps;
    double loss;
  };
  std::size_t done = 0, all = 0;  // runs
  std::vector<Busy> busy = {};
  double seconds_left = -1;  // negative: not known yet
  bool stopping = false;
};

/// Called by train_all, by the thread that called it; all may be empty.
struct SweepEvents {
  enum class End { done, failed, stopped };
  std::function<void(std::size_t finished, std::size_t all)> found = {};  // at the start: what is there already
  std::function<void(const SweepRun&)> started = {};
  std::function<void(const SweepRun&, End)> ended = {};
  std::function<void(const SweepProgress&)> progress = {};  // ten times a second; in this process after every step
};

/// Trains what is not finished, from where it stands. Once `stop` is true the running ones save, and no others start: then the
/// result is true.
[[nodiscard]] bool train_all(std::vector<SweepRun>& runs, const SweepOptions& options, const SweepEvents& events,
                             const std::atomic<bool>& stop);

/// A run of a sweep beside the values that it has of the grid.
struct SweepRow {
  GridValues set;
  std::string state;  // of the run, or "waiting"
  RunSummary summary;

  [[nodiscard]] bool finished() const { return state == "finished"; }
};
[[nodiscard]] Json to_json(const SweepRow& row);
/// The columns of the grid, of the metric and of what it took.
[[nodiscard]] std::string sweep_text(const std::vector<SweepRow>& rows);

/// The best first, of equal ones that with the lower test loss; what has no value comes last, in the order of the grid.
[[nodiscard]] std::vector<SweepRow> sweep_rows(const std::vector<SweepRun>& runs);

/// Runs that differ in their seed alone. Mean and deviation (of a sample) are of those that are finished.
struct SweepGroup {
  GridValues set;  // without the seed
  Index runs = 0, finished = 0;
  std::optional<Metric> metric = {};
  std::optional<double> value = {}, deviation = {}, test_loss = {};  // nothing: of too few runs
};
[[nodiscard]] Json to_json(const SweepGroup& group);
[[nodiscard]] std::string groups_text(const std::vector<SweepGroup>& groups);
/// Ordered as the rows are.
[[nodiscard]] std::vector<SweepGroup> sweep_groups(const std::vector<SweepRow>& rows);

}  // namespace isomer

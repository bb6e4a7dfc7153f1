#pragma once
// The runs of a sweep, each trained by a process of its own, so that one that crashes takes no other with it.
#include <functional>
#include <string>
#include <vector>

#include "isomer/train/grid.h"

namespace isomer::cli {

struct SweepRun {
  GridPoint point;
  std::string folder;
  std::string problem = {};  // how its process failed
};

/// The runs below `out`. Throws Error when one of the folders holds a run of another recipe.
[[nodiscard]] std::vector<SweepRun> sweep_runs(const std::vector<GridPoint>& points, const std::string& out);

struct SweepOptions {
  int jobs = 1;     // at a time
  int threads = 1;  // of all of them together
  bool tensorboard = false;
};

/// Trains what is not finished, from where it stands; `ended` is called after each. Ctrl-C lets the running ones save and starts
/// no others: then the result is true.
[[nodiscard]] bool train_all(std::vector<SweepRun>& runs, const SweepOptions& options, const std::function<void()>& ended);

}  // namespace isomer::cli

#pragma once
// When a run has learned enough: its metric has reached the goal (train.stop_at), or has not risen for a while (train.patience).
//
//   Stopping stopping(recipe.train, lower_is_better(metric));
//   const bool end = stopping.enough(value);                 // once for each evaluation, in order
#include <algorithm>
#include <limits>

#include "isomer/train/recipe.h"

namespace isomer {

class Stopping {
 public:
  Stopping(const TrainRecipe& recipe, bool lower_is_better)
      : sign_(lower_is_better ? -1 : 1), goal_(recipe.stop_at), patience_(recipe.patience) {}

  /// Takes note of an evaluation's value. Once true, the run is to end.
  bool enough(double value) {
    reached_ = goal_ > 0 && sign_ * value >= sign_ * goal_;
    waited_ = sign_ * value > best_ ? 0 : waited_ + 1;
    best_ = std::max(best_, sign_ * value);
    return reached_ || out_of_patience();
  }
  [[nodiscard]] bool reached_goal() const { return reached_; }
  [[nodiscard]] bool out_of_patience() const { return patience_ > 0 && waited_ >= patience_; }

 private:
  double sign_, goal_;
  Index patience_, waited_ = 0;
  double best_ = -std::numeric_limits<double>::infinity();
  bool reached_ = false;
};

}  // namespace isomer

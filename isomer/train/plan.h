#pragma once
// What a training will take, measured by its first steps: the row of `isomer train --dry-run`.
#include "isomer/io/table.h"
#include "isomer/train/memory.h"
#include "isomer/train/session.h"

namespace isomer {

struct TrainPlan {
  Index parameters = 0, tokens_per_step = 0, steps = 0;
  MemoryEstimate memory = {};
  double seconds_per_step = 0, tokens_per_second = 0;
  double seconds = 0;     // of all steps, without evaluations
  double peak_bytes = 0;  // that the process has taken so far
};
[[nodiscard]] Json to_json(const TrainPlan& plan);
/// A line for each thing.
[[nodiscard]] std::string plan_text(const TrainPlan& plan);

/// Takes two steps: the first sets up memory.
[[nodiscard]] TrainPlan plan_training(Session& session, const MemoryEstimate& memory);

}  // namespace isomer

#pragma once
// How a trained run does on a task: the row of `isomer eval`.
//
//   const EvalRow row = evaluate_run("runs/mqar", {.settings = {"task.pairs=16"}, .examples = 1024}, context);
#include <string>

#include "isomer/io/table.h"
#include "isomer/train/session.h"

namespace isomer {

struct EvalRequest {
  std::string task = {};             // empty: the run's own
  Overrides settings = {};           // of the task
  Index examples = 1024, batch = 0;  // 0: as in training
};

struct EvalRow {
  std::string run, task;
  Index step = 0;  // that the weights are of
  EvalReport eval;
};
[[nodiscard]] Json to_json(const EvalRow& row);
/// In one sentence.
[[nodiscard]] std::string eval_text(const EvalRow& row);

[[nodiscard]] EvalRow evaluate_run(const std::string& run, const EvalRequest& request, Context& context);

}  // namespace isomer

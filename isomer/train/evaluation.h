#pragma once
// How a trained run does on a task: the rows of `isomer eval`.
//
//   const EvalRow row = evaluate_run("runs/mqar", {.settings = {"task.pairs=16"}, .examples = 1024}, context);
//   const auto rows = evaluate_grid("runs/s3", {}, parse_grid({"task.test_length=64,128"}), context);
//
// An option that is set and changes nothing in the examples that are scored is an Error that names the one which does: a score
// that seems to be of longer sequences and is not would mislead.
#include <string>
#include <vector>

#include "isomer/train/grid.h"
#include "isomer/train/session.h"

namespace isomer {

struct EvalRequest {
  std::string task = {};             // empty: the run's own
  Overrides settings = {};           // of the task
  Index examples = 1024, batch = 0;  // 0: as in training
  Split split = Split::test;
};

struct EvalRow {
  std::string run, task;
  Index step = 0;       // that the weights are of
  GridValues set = {};  // of the grid
  EvalReport eval = {};
};
[[nodiscard]] Json to_json(const EvalRow& row);
/// In one sentence.
[[nodiscard]] std::string eval_text(const EvalRow& row);
/// Of a grid: a line for each.
[[nodiscard]] std::string eval_table(const std::vector<EvalRow>& rows);

[[nodiscard]] EvalRow evaluate_run(const std::string& run, const EvalRequest& request, Context& context);
/// Every combination of options of the task. All of them are tried before the first is scored.
[[nodiscard]] std::vector<EvalRow> evaluate_grid(const std::string& run, const EvalRequest& request,
                                                 const std::vector<GridAxis>& axes, Context& context);

}  // namespace isomer

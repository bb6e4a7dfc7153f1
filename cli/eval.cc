// isomer eval: how a run does on its task, or on another of the same shape.
#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/train/evaluation.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string run, split = "test";
  EvalRequest eval;
  std::vector<std::string> grid;
  TableOutput output;
  int threads = 0;
};

std::vector<GridAxis> axes_of(const Request& request) {
  if (request.grid.empty()) return {};
  std::vector<GridAxis> axes = parse_grid(request.grid);
  for (const GridAxis& axis : axes)
    if (!axis.key.starts_with("task.") || axis.key == "task.name")
      throw Error("--grid: expected options of the task (task.length=64,128), got " + axis.name);
  return axes;
}

int eval_request(const Request& request) {
  Context context(request.threads);
  EvalRequest eval = request.eval;
  for (const Split split : {Split::train, Split::test, Split::validation})
    if (name_of(split) == request.split) eval.split = split;
  const std::vector<EvalRow> rows = evaluate_grid(request.run, eval, axes_of(request), context);
  print_rows(context, rows_json(rows), request.output, request.grid.empty() ? eval_text(rows.front()) : eval_table(rows));
  return kDone;
}
}  // namespace

Command eval_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("run", request->run, "Folder of a run").required();
  options.add("--task", request->eval.task, "Another task than the run's").value("NAME");
  options.set(request->eval.settings,
              "An option of the task that its test examples depend on, e.g. task.pairs=16; may be repeated");
  options.add("--grid", request->grid, "task.KEY=VALUE,VALUE,…: a table of all combinations; may be repeated")
      .value("AXIS")
      .repeated();
  options.add("--split", request->split, "Which examples of the task [test]")
      .value("NAME")
      .one_of({"test", "validation", "train"});
  options.add("--examples", request->eval.examples, "How many of them, at most [1024]").value("N").at_least(1);
  options.add("--batch", request->eval.batch, "Examples at once [as in training]").value("N").at_least(1);
  options.table(request->output);
  options.threads(request->threads);
  options.footer(
      "Example:\n  isomer eval runs/mqar --set task.pairs=16\n  isomer eval runs/s3 --grid task.test_length=64,128,256,512\n"
      "  isomer eval runs/mqar --task mad-recall --set task.length=64");
  return [request] { return eval_request(*request); };
}

}  // namespace isomer::cli

// isomer eval: how a run does on its task, or on another of the same shape.
#include "cli/command.h"
#include "cli/report.h"
#include "isomer/train/evaluation.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string run;
  EvalRequest eval;
  TableOutput output;
  int threads = 0;
};

int eval_request(const Request& request) {
  Context context(request.threads);
  const EvalRow row = evaluate_run(request.run, request.eval, context);
  print_rows(context, rows_json(std::vector{row}), request.output, eval_text(row));
  return kDone;
}
}  // namespace

Command eval_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("run", request->run, "Folder of a run").required();
  options.add("--task", request->eval.task, "Another task than the run's").value("NAME");
  options.set(request->eval.settings, "An option of the task, e.g. task.length=256; may be repeated");
  options.add("--examples", request->eval.examples, "Test examples [1024]").value("N").at_least(1);
  options.add("--batch", request->eval.batch, "Examples at once [as in training]").value("N").at_least(1);
  options.table(request->output);
  options.threads(request->threads);
  options.footer(
      "Example:\n  isomer eval runs/mqar --set task.pairs=16\n  isomer eval runs/mqar --task mad-recall --set task.length=64");
  return [request] { return eval_request(*request); };
}

}  // namespace isomer::cli

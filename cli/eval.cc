// isomer eval: how a run does on its task, or on another of the same shape.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/train/session.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string run, task;
  std::vector<std::string> settings;
  Index examples = 1024, batch = 0;
  bool json = false;
  int threads = 0;
};

int eval_request(const Request& request) {
  Context context(request.threads);
  const auto session = open_run_on(request.run, request.task, request.settings, context);
  const EvalReport eval = session->evaluate({.examples = request.examples, .batch = request.batch});
  if (request.json) {
    print_json(context, {{{"run", request.run},
                          {"task", session->recipe().task},
                          {"step", session->steps_done()},
                          {"metric", name_of(eval.metric)},
                          {"value", eval.value},
                          {"loss", eval.loss},
                          {"examples", eval.examples}}});
  } else {
    std::cout << request.run << ", step " << session->steps_done() << ", " << session->recipe().task << ": "
              << name_of(eval.metric) << " " << text_of(eval.value) << ", loss " << text_of(eval.loss) << " on " << eval.examples
              << " test examples\n";
  }
  return kDone;
}
}  // namespace

Command eval_command(CLI::App& app) {
  auto request = std::make_shared<Request>();
  app.add_option("run", request->run, "Folder of a run")->required();
  app.add_option("--task", request->task, "Another task than the run's")->type_name("NAME");
  add_set(app, request->settings, "An option of the task, e.g. task.length=256; may be repeated");
  require_at_least(*app.add_option("--examples", request->examples, "Test examples [1024]")->type_name("N"), 1);
  require_at_least(*app.add_option("--batch", request->batch, "Examples at once [as in training]")->type_name("N"), 1);
  app.add_flag("--json", request->json, "One JSON object instead of a line");
  add_threads(app, request->threads);
  app.footer(
      "Example:\n  isomer eval runs/mqar --set task.pairs=16\n  isomer eval runs/mqar --task induction --set task.vocabulary=64");
  return [request] { return eval_request(*request); };
}

}  // namespace isomer::cli

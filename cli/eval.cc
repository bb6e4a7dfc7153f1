// isomer eval: how a run does on its task, or on another of the same shape.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/train/session.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string run;
  std::vector<std::string> settings;
  Index examples = 1024;
  bool json = false;
  int threads = 0;
};

int eval_request(const Request& request) {
  Context context(request.threads);
  const RunFolder folder = RunFolder::open(request.run);
  // Only the task may differ: the weights are those of the run's model.
  for (const std::string& setting : request.settings)
    if (!setting.starts_with("task.")) throw Error("--set: expected a key of the task (task.length=256), got " + setting);
  Session session(read_recipe(folder.recipe_path(), request.settings), context);
  session.resume_weights(folder.load_latest());
  const EvalReport eval = session.evaluate({.examples = request.examples});
  if (request.json) {
    print_json(context, {{{"run", request.run},
                          {"task", session.recipe().task},
                          {"step", session.steps_done()},
                          {"metric", name_of(eval.metric)},
                          {"value", eval.value},
                          {"loss", eval.loss},
                          {"examples", eval.examples}}});
  } else {
    std::cout << request.run << ", step " << session.steps_done() << ", " << session.recipe().task << ": " << name_of(eval.metric)
              << " " << formatted("%.4g", eval.value) << ", loss " << formatted("%.4g", eval.loss) << " on " << eval.examples
              << " test examples\n";
  }
  return kDone;
}
}  // namespace

Command eval_command(CLI::App& app) {
  auto request = std::make_shared<Request>();
  app.add_option("run", request->run, "Folder of a run")->required();
  app.add_option("--set", request->settings, "Change the task, e.g. task.length=256")->allow_extra_args(false);
  app.add_option("--examples", request->examples, "Test examples [1024]")->check(CLI::PositiveNumber);
  app.add_flag("--json", request->json, "One JSON object instead of a line");
  add_threads(app, request->threads);
  app.footer("Example:\n  isomer eval runs/mqar --set task.pairs=16");
  return [request] { return eval_request(*request); };
}

}  // namespace isomer::cli

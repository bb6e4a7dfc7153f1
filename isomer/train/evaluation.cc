#include "isomer/train/evaluation.h"

#include "isomer/base/format.h"

namespace isomer {

EvalRow evaluate_run(const std::string& run, const EvalRequest& request, Context& context) {
  const auto session = open_run_on(run, request.task, request.settings, context);
  return {.run = run,
          .task = session->recipe().task,
          .step = session->steps_done(),
          .eval = session->evaluate({.examples = request.examples, .batch = request.batch})};
}

Json to_json(const EvalRow& row) {
  return Json::object({{"run", row.run},
                       {"task", row.task},
                       {"step", row.step},
                       {"metric", name_of(row.eval.metric)},
                       {"value", row.eval.value},
                       {"loss", row.eval.loss},
                       {"examples", row.eval.examples}});
}

std::string eval_text(const EvalRow& row) {
  return row.run + ", step " + std::to_string(row.step) + ", " + row.task + ": " + std::string(name_of(row.eval.metric)) + " " +
         text_of(row.eval.value) + ", loss " + text_of(row.eval.loss) + " on " + std::to_string(row.eval.examples) +
         " test examples\n";
}

}  // namespace isomer

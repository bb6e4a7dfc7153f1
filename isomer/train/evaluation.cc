#include "isomer/train/evaluation.h"

#include "isomer/base/error.h"
#include "isomer/base/format.h"
#include "isomer/io/files.h"
#include "isomer/models/pretrained.h"

namespace isomer {

namespace {
/// The options that decide in the test what `option` decides in training.
std::string test_options(const TaskType& type, const std::string& option) {
  if (option == "test_examples") return "--examples";
  const std::string twin = "test_" + (option.starts_with("train_") ? option.substr(6) : option);
  std::string all;
  for (const OptionSpec& other : options_of(type)) {
    if (other.name == twin) return "task." + twin;
    if (other.name.starts_with("test_") && other.name != "test_examples")
      all.append(all.empty() ? "" : ", ").append("task.").append(other.name);
  }
  return all;
}

/// Does the task read the same bytes as before, wherever they are now?
bool has_data(const Task& task, const Recipe& before) {
  try {
    return make_task(before.task, before.task_settings)->data_hash() == task.data_hash();
  } catch (const Error&) {
    return false;
  }
}

/// An option that is set, and not as the run has it, must reach the examples that are asked for.
void require_effect(const Recipe& before, const Task& task, const EvalRequest& request) {
  const Settings old = TaskOptions(task.type(), before.task_settings).values();
  for (const std::string& setting : request.settings) {
    const std::string option = setting.substr(5, setting.find('=') - 5);  // task.OPTION=VALUE
    if (old.at(option) == task.options().at(option)) continue;
    if (is_path(option) && has_data(task, before)) continue;
    Settings without = task.options();
    without[option] = old.at(option);
    try {
      if (!same_examples(task, *make_task(task.type().name, without), request.split, request.examples)) continue;
    } catch (const Error&) {
      continue;  // the others do not go without it
    }
    const std::string right = request.split == Split::test ? test_options(task.type(), option) : "";
    throw Error(setting + " changes nothing in the " + std::string(name_of(request.split)) + " examples of " +
                std::string(task.type().name) + (right.empty() ? "" : "; " + right + " does"));
  }
}

/// Says by which option data that is not where the run had it is found.
void use_task(Session& session, const Recipe& recipe) {
  try {
    session.use_task_of(recipe);
  } catch (const Error& problem) {
    for (const auto& [option, value] : recipe.task_settings) {
      const auto line = recipe.lines.find("task." + option);
      const bool of_run = line != recipe.lines.end() && line->second > 0;
      if (is_path(option) && of_run && !value.empty() && !is_there(value))
        throw Error(std::string(problem.what()) + "; --set task." + option + "=PATH says where it is");
    }
    throw;
  }
}

EvalRequest with_values(EvalRequest request, const GridValues& values) {
  for (const auto& [axis, value] : values) request.settings.emplace_back(axis).append("=").append(value);
  return request;
}

std::string lengths_text(const EvalReport& eval, const char* between) {
  const std::string longest = std::to_string(eval.longest);
  return eval.shortest == eval.longest ? longest : std::to_string(eval.shortest) + between + longest;
}
}  // namespace

EvalRow evaluate_run(const std::string& run, const EvalRequest& request, Context& context) {
  return evaluate_grid(run, request, {}, context).front();
}

std::vector<EvalRow> evaluate_grid(const std::string& run, const EvalRequest& request, const std::vector<GridAxis>& axes,
                                   Context& context) {
  // Not a mistake of the run's recipe, which would be blamed for it.
  if (!request.task.empty()) (void)find_task(request.task);
  for (const GridAxis& axis : axes)
    for (const std::string& setting : request.settings)
      if (setting.starts_with(axis.key + "="))
        throw Error("--grid: expected " + axis.key + " once, got " + setting + " beside it");
  const bool of_run = !is_bare_model(run);
  if (!of_run && request.task.empty()) throw Error(run + ": a model of no run has no task of its own, expected --task");
  const auto session = of_run ? open_run(run, context) : open_model_on(run, request.task, context);
  const Recipe own = session->recipe();
  const std::string& task = request.task.empty() ? own.task : request.task;
  const Recipe before = with_task(own, task, {});
  const std::vector<GridValues> points = combinations(axes);
  for (const GridValues& values : points) {
    const EvalRequest here = with_values(request, values);
    use_task(*session, with_task(own, task, here.settings));
    if (request.split == Split::validation && !session->task().has_validation())
      throw Error("validation: " + task + " keeps no examples for it, expected the split train or test");
    require_effect(before, session->task(), here);
  }
  std::vector<EvalRow> rows;
  for (const GridValues& values : points) {
    if (points.size() > 1) use_task(*session, with_task(own, task, with_values(request, values).settings));
    rows.push_back({.run = run,
                    .task = task,
                    .step = session->steps_done(),
                    .set = values,
                    .eval = session->evaluate({.examples = request.examples, .batch = request.batch, .split = request.split})});
  }
  return rows;
}

Json to_json(const EvalRow& row) {
  Json json = Json::object({{"run", row.run},
                            {"task", row.task},
                            {"step", row.step},
                            {"metric", name_of(row.eval.metric)},
                            {"value", row.eval.value},
                            {"loss", row.eval.loss},
                            {"examples", row.eval.examples},
                            {"split", name_of(row.eval.split)},
                            {"shortest", row.eval.shortest},
                            {"longest", row.eval.longest}});
  if (!row.set.empty()) json.set("set", to_json(row.set));
  return json;
}

std::string eval_text(const EvalRow& row) {
  return row.run + ", step " + std::to_string(row.step) + ", " + row.task + ": " + std::string(name_of(row.eval.metric)) + " " +
         text_of(row.eval.value) + ", loss " + text_of(row.eval.loss) + " on " + std::to_string(row.eval.examples) +
         " examples of the " + std::string(name_of(row.eval.split)) + " split, " + lengths_text(row.eval, " to ") + " long\n";
}

std::string eval_table(const std::vector<EvalRow>& rows) {
  std::vector<Cells> all;
  for (const EvalRow& row : rows) {
    Cells cells = cells_of(row.set);
    for (const Cell& cell : Cells{{std::string(name_of(row.eval.metric)), text_of(row.eval.value)},
                                  {"loss", text_of(row.eval.loss)},
                                  {"examples", std::to_string(row.eval.examples)},
                                  {"long", lengths_text(row.eval, "-")}})
      cells.push_back(cell);
    all.push_back(std::move(cells));
  }
  return all.empty() ? "" : aligned(all.front(), all);
}

}  // namespace isomer

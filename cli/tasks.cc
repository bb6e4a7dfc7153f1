// isomer tasks: which tasks there are, what their options are, and what their examples look like.
#include <algorithm>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/context.h"
#include "isomer/base/error.h"
#include "isomer/tasks/task.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string task, split = "train";
  std::vector<std::string> set;
  Index show = 0, first = 0;
  bool json = false;
};

// A line of an example, and as many vectors of one.
constexpr std::size_t kColumns = 100, kVectors = 8;

std::string padded(const std::string& text, std::size_t width) { return std::string(width - text.size(), ' ') + text; }

/// Tokens above their labels, in columns.
void print_tokens(const Task& task, const Batch& batch) {
  const std::size_t T = std::size_t(batch.lengths[0]), labels = batch.labels.size() == batch.tokens.size() ? T : 0;
  for (std::size_t t = 0; t < T;) {
    std::string in = "  in ", out = "  out";
    bool any = false;
    for (; t < T && in.size() < kColumns; ++t) {
      const std::string token = task.spell(batch.tokens[t]);
      const bool labelled = t < labels && batch.labels[t] != kIgnored;
      const std::string label = labelled ? task.spell(batch.labels[t]) : "";
      const std::size_t width = std::max(token.size(), label.size());
      in += ' ' + padded(token, width);
      out += ' ' + padded(label, width);
      any = any || labelled;
    }
    out.erase(out.find_last_not_of(' ') + 1);
    std::cout << in << '\n';
    if (any) std::cout << out << '\n';
  }
}

/// Of a text, the labels are the next tokens: it reads best as it is.
void print_text(const Task& task, const Batch& batch) {
  std::string line;
  for (std::int64_t token : batch.tokens) {
    line += task.spell(token);
    if (token != '\n' && line.size() < kColumns) continue;
    std::cout << "  " << line << '\n';
    line.clear();
  }
  if (!line.empty()) std::cout << "  " << line << '\n';
}

void print_picture(const Task& task, const Batch& batch) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  const std::int64_t top = std::max<std::int64_t>(task.shape().vocabulary - 1, 1);
  for (std::size_t t = 0; t < batch.tokens.size(); ++t) {
    const std::size_t shade = std::size_t(batch.tokens[t]) * (kShades.size() - 1) / std::size_t(top);
    // Characters are twice as high as wide.
    std::cout << kShades[shade] << kShades[shade];
    if ((t + 1) % std::size_t(task.shape().row) == 0) std::cout << '\n';
  }
}

void print_vectors(const Task& task, const Batch& batch) {
  const std::size_t T = std::size_t(batch.T), F = std::size_t(task.shape().features);
  for (std::size_t t = 0; t < T; ++t) {
    if (T > kVectors && t == kVectors / 2) {
      std::cout << "  … " << T - kVectors << " more …\n";
      t += T - kVectors;
    }
    std::string line = "  in ";
    for (std::size_t f = 0; f < F && line.size() < kColumns; ++f) line += formatted(" %6.3f", double(batch.inputs[t * F + f]));
    std::cout << line << (line.size() < kColumns ? "" : " …");
    if (t < batch.known.size()) std::cout << "  class " << batch.known[t];
    if (!batch.known.empty() && t >= batch.known.size()) std::cout << "  class? " << batch.labels[t];
    std::cout << '\n';
  }
  if (batch.targets.empty()) return;
  std::cout << "  out";
  for (float target : batch.targets) std::cout << formatted(" %6.3f", double(target));
  std::cout << '\n';
}

std::string name_of_class(const Task& task, std::int64_t label) {
  const std::vector<std::string>& names = task.shape().labels;
  return names.empty() ? std::to_string(label) : names[std::size_t(label)];
}

void print_example(const Task& task, const Batch& batch, const std::string& title) {
  std::cout << '\n' << title << '\n';
  if (batch.tokens.empty()) {
    print_vectors(task, batch);
  } else if (task.shape().metric == Metric::bits_per_token) {
    print_text(task, batch);
  } else if (task.shape().row > 0) {
    print_picture(task, batch);
  } else {
    print_tokens(task, batch);
  }
  if (task.shape().kind == TaskKind::tokens_class || task.shape().kind == TaskKind::vectors_class)
    std::cout << "  class " << name_of_class(task, batch.labels[0]) << '\n';
}

Json as_json(const TaskType& type) {
  Json options = Json::array();
  for (const OptionSpec& option : options_of(type))
    options.push(Json::object({{"name", option.name}, {"default", option.fallback}, {"help", option.help}}));
  return Json::object({{"task", type.name}, {"source", type.source}, {"summary", type.summary}, {"options", options}});
}

Json as_json(const Task& task, Json examples) {
  Json row = as_json(task.type()), set = Json::object();
  for (const auto& [name, value] : task.options()) set.set(name, value);
  const TaskShape& shape = task.shape();
  row.set("set", set);
  row.set("kind", name_of(shape.kind));
  row.set("metric", name_of(shape.metric));
  row.set("length", shape.length);
  row.set("vocabulary", shape.vocabulary);
  row.set("classes", shape.classes);
  row.set("features", shape.features);
  row.set("outputs", shape.outputs);
  row.set("examples", std::move(examples));
  return row;
}

Json as_json(const Batch& batch, const std::string& split, Index index) {
  Json example = Json::object({{"split", split}, {"index", index}});
  if (!batch.tokens.empty()) example.set("tokens", batch.tokens);
  if (!batch.labels.empty()) example.set("labels", batch.labels);
  if (!batch.inputs.empty()) example.set("inputs", batch.inputs);
  if (!batch.targets.empty()) example.set("targets", batch.targets);
  if (!batch.known.empty()) example.set("known", batch.known);
  return example;
}

void print_shape(const TaskShape& shape) {
  std::cout << "  kind: " << name_of(shape.kind) << ", metric: " << name_of(shape.metric) << "\n  length: " << shape.length;
  if (shape.vocabulary > 0) std::cout << ", vocabulary: " << shape.vocabulary;
  if (shape.features > 0) std::cout << ", features: " << shape.features;
  if (shape.classes > 0) std::cout << ", classes: " << shape.classes;
  if (shape.outputs > 0) std::cout << ", outputs: " << shape.outputs;
  std::cout << "\n";
}

/// `task` is null when it could not be made.
void print_task(const TaskType& type, const Task* task, const Settings& values) {
  std::cout << type.name << ": " << type.summary << "\n  source: " << type.source << "\n";
  if (task != nullptr) print_shape(task->shape());
  std::cout << "\n";
  Table table({"option", "value", "default", "what it is"});
  for (const OptionSpec& option : options_of(type))
    table.add(
        {std::string(option.name), values.find(option.name)->second, std::string(option.fallback), std::string(option.help)});
  table.print();
}

Split split_named(const std::string& name) {
  for (const Split split : {Split::train, Split::test, Split::validation})
    if (name == name_of(split)) return split;
  throw Error("expected --split train, test or validation, got " + name);
}

/// A task whose data are not there still has options to look at: then null, and what is missing is said.
std::unique_ptr<Task> task_to_show(const Request& request) {
  try {
    return make_task(request.task, settings_of(request.set));
  } catch (const Error& problem) {
    if (request.show > 0 || request.json || !request.set.empty()) throw;
    print_task(find_task(request.task), nullptr, TaskOptions(find_task(request.task), {}).values());
    std::cout << "\nnot ready: " << problem.what() << "\n";
    return nullptr;
  }
}

int show_task(const Request& request) {
  (void)find_task(request.task);
  const std::unique_ptr<Task> task = task_to_show(request);
  if (!task) return kDone;
  const Split split = split_named(request.split);
  if (!request.json) print_task(task->type(), task.get(), task->options());
  Json examples = Json::array();
  Batch batch;
  for (Index i = request.first; i < request.first + request.show; ++i) {
    task->fill(split, std::uint64_t(i), 1, batch);
    if (request.json)
      examples.push(as_json(batch, request.split, i));
    else
      print_example(*task, batch, request.split + " " + std::to_string(i));
  }
  if (request.json) print_json(Context(1), Json::Array{as_json(*task, std::move(examples))});
  return kDone;
}

int list_tasks(const Request& request) {
  if (!request.set.empty() || request.show > 0) throw Error("expected a task with --set and --show, got none");
  if (request.json) {
    Json rows = Json::array();
    for (const TaskType* type : tasks()) rows.push(as_json(*type));
    print_json(Context(1), rows);
    return kDone;
  }
  Table table({"task", "what is asked", "source"});
  for (const TaskType* type : tasks())
    table.add({std::string(type->name), std::string(type->summary), std::string(type->source)});
  table.print();
  return kDone;
}
}  // namespace

Command tasks_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("TASK", request->task, "Which task; all are listed if none is named");
  options.set(request->set, "An option of the task; may be repeated");
  options.add("--show", request->show, "Print so many examples").from_to(0, 1000).value("N");
  options.add("--first", request->first, "The first example to print").value("I").at_least(0);
  options.add("--split", request->split, "train, test or validation").value("SPLIT");
  options.flag("--json", request->json, "Print one JSON object");
  options.footer("Example:\n  isomer tasks mqar --set length=32 --set pairs=2 --show 1");
  return [request] { return request->task.empty() ? list_tasks(*request) : show_task(*request); };
}

}  // namespace isomer::cli

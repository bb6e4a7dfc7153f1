// isomer train: a recipe becomes a run folder.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/io/files.h"
#include "isomer/io/text.h"
#include "isomer/models/not_finite.h"
#include "isomer/train/plan.h"
#include "isomer/train/start.h"
#include "isomer/train/tensorboard.h"
#include "isomer/train/trainer.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string recipe, out, from;
  std::vector<std::string> settings;
  bool resume = false, changed_data = false, fall_back = false, print_config = false, dry_run = false, stats = false,
       tensorboard = false;
  TableOutput output;
  int threads = 0;
};

/// A line that is overwritten on a terminal; elsewhere a line every so often.
class Display {
 public:
  explicit Display(const Recipe& recipe) : steps_(recipe.train.steps), terminal_(::isatty(STDERR_FILENO) != 0) {}

  void step(const StepReport& report, double tokens_per_second) {
    seconds_ += report.seconds;
    ++here_;
    const double left = seconds_ / double(here_) * double(steps_ - report.step);
    const std::string line = "step " + std::to_string(report.step) + "/" + std::to_string(steps_) + "  loss " +
                             text_of(report.loss) + "  lr " + text_of(report.lr) + "  |g| " + text_of(report.gradient_norm) +
                             "  " + formatted("%.0f", tokens_per_second) + " tokens/s  left " + clock_of(left);
    if (terminal_) return progress_.show(bar(report.step) + line);
    const Index every = std::max<Index>(1, steps_ / 20);
    if (report.step % every == 0 || report.step == 1) std::cerr << line << "\n";
  }
  /// What is printed next begins a line.
  void clear() const { progress_.show(""); }
  void evaluated(Index step, const EvalReport& eval) const {
    clear();
    std::cout << "step " << step << ": " << name_of(eval.metric) << " " << text_of(eval.value) << ", loss " << text_of(eval.loss)
              << " on " << eval.examples << " " << name_of(eval.split) << " examples" << std::endl;
  }

 private:
  [[nodiscard]] std::string bar(Index step) const {
    constexpr Index kCells = 20;
    std::string cells;
    for (Index i = 0; i < kCells; ++i) cells += i < step * kCells / steps_ ? "#" : ".";
    return "[" + cells + "] ";
  }
  Index steps_, here_ = 0;
  double seconds_ = 0;
  bool terminal_;
  Progress progress_;
};

/// Of runs/NAME, runs/NAME-2, … the first that is not there, or with --resume the last that is.
std::string default_folder(const Request& request) {
  const std::string first = "runs/" + std::filesystem::path(request.recipe).stem().string();
  std::string last = first, path = first;
  for (int i = 2; is_there(path); ++i) {
    last = path;
    path = first + "-" + std::to_string(i);
  }
  return request.resume ? last : path;
}

/// The line that refuses a step, or warns of it; empty if it fits into `factor` times the memory of the machine.
std::string too_large(const MemoryEstimate& need, double factor) {
  const double there = machine_memory_bytes();
  if (need.total() <= factor * there) return "";
  return "expected a step that fits into the " + bytes_text(there) + " of this machine, got one of about " +
         bytes_text(need.total()) + ", of which " + bytes_text(need.activations) +
         " are activations; a smaller train.batch, a larger train.accumulate or train.recompute=true takes less";
}

int print_plan(const Request& request, Session& session, const MemoryEstimate& memory, Context& context) {
  const TrainPlan plan = plan_training(session, memory);
  print_rows(context, rows_json(std::vector{plan}), request.output, plan_text(plan));
  return kDone;
}

void report_end(const TrainOutcome& outcome, const Request& request, const std::string& folder) {
  using End = TrainOutcome::End;
  const char* const how = outcome.end == End::stopped             ? "stopped"
                          : outcome.end == End::reached_goal      ? "reached its goal"
                          : outcome.end == End::stopped_improving ? "stopped improving"
                                                                  : "finished";
  std::cout << how << " after " << outcome.steps << " steps, " << clock_of(outcome.seconds) << "; run in " << folder << "\n";
  if (request.stats)
    std::cout << "making batches took " << formatted("%.2f", 100 * outcome.data_seconds / outcome.seconds)
              << " % of the time; peak memory " << peak_memory_mib() << " MiB\n";
  if (outcome.end == TrainOutcome::End::stopped) std::cout << "go on with: " << resume_command(folder) << "\n";
}

/// The folder to train in: a new one, or with --resume that of the same recipe.
RunFolder folder_for(const Request& request, const Recipe& recipe, const std::string& path) {
  if (!request.resume) return RunFolder::create(path, to_toml(recipe));
  RunFolder run = RunFolder::open(path);
  for (const RecipeChange& change : changes(read_recipe(run.recipe_path()), recipe))
    if (!may_change(change.key))
      throw Error(request.recipe + ": expected " + change.key + " of the run in " + path + ", which is " + change.before +
                  ", got " + change.after + "; " + resume_command(path) + " goes on with it as it is");
  return run;
}

/// Puts the session where the run stands, and keeps what the recipe has new, such as more steps.
void go_on(const Request& request, Session& session, const RunFolder& run, FileLock& claim) {
  const ResumeOptions options{.changed_data = request.changed_data,
                              .fall_back = request.fall_back,
                              .set_aside = [](const std::string& problem) { std::cout << "set aside: " << problem << "\n"; }};
  const auto hint = [&]() -> std::string {
    const std::vector<Index> steps = run.checkpoints();
    if (steps.size() < 2 || request.fall_back) return "";
    return "; to go on from step " + std::to_string(steps[steps.size() - 2]) + ": " + resume_command(run.path()) + " --fall-back";
  };
  try {
    isomer::resume(session, run, options);
  } catch (const NotFinite& problem) {
    throw NotFinite(problem.what() + hint());
  } catch (const DamagedCheckpoint& problem) {
    throw Error(problem.what() + hint());
  }
  if (changes(read_recipe(run.recipe_path()), session.recipe()).empty()) return;
  write_text(run.recipe_path(), to_toml(session.recipe()));
  claim = run.claim();  // the claim is one of the file that was there
}

/// The weights that the recipe says to begin with, unless the run has a checkpoint to go on from.
std::optional<StartReport> start_of(const Request& request, const std::string& folder, Session& session) {
  const std::string& path = isomer::start_of(session.recipe());
  if (path.empty() || (request.resume && RunFolder::open(folder).has_checkpoint())) return {};
  return start_from(session.parameters(), path);
}

void print_start(const StartReport& report) {
  using Fate = StartedWeight::Fate;
  Table table({"weight", "shape", "start"});
  for (const StartedWeight& weight : report.weights) {
    const bool here = weight.fate != Fate::unknown;
    std::string fate(name_of(weight.fate));
    if (weight.fate == Fate::misshapen) fate += ": " + isomer::text_of(weight.there) + " there";
    table.add({weight.name, isomer::text_of(here ? weight.shape : weight.there), fate});
  }
  table.print();
  std::cout << "began with " << report.count(Fate::taken) << " weights of " << report.from << "; "
            << report.count(Fate::misshapen) << " misshapen and " << report.count(Fate::missing) << " missing ones are new, "
            << report.count(Fate::unknown) << " unknown ones were left there" << std::endl;
}

/// Also for a run that had one before, so that it stays complete.
std::unique_ptr<Tensorboard> board_for(const Request& request, const RunFolder& run) {
  if (!request.tensorboard && !is_there(Tensorboard::path_in(run))) return nullptr;
  return std::make_unique<Tensorboard>(run);
}

/// A recipe that says nothing of its model has the one that it begins with.
Recipe recipe_of(const Request& request) {
  Overrides settings = request.settings;
  if (!request.from.empty()) settings.push_back("train.start=" + request.from);
  Recipe recipe = read_recipe(request.recipe, settings);
  const bool says_nothing = std::ranges::none_of(
      recipe.lines, [](const auto& line) { return line.first.starts_with("model.") && line.first != "model.dropout"; });
  if (request.from.empty() || !says_nothing) return recipe;
  settings.back() = "model.from=" + request.from;
  return read_recipe(request.recipe, settings);
}

int train_request(const Request& request) {
  const std::string folder = request.out.empty() ? default_folder(request) : request.out;
  const Recipe recipe = recipe_of(request);
  if (request.print_config) {
    std::cout << to_toml(resolved(recipe));
    return kDone;
  }
  if (!request.output.for_people() && !request.dry_run)
    throw Error(std::string("expected --") + (request.output.json ? "json" : "csv") +
                " with --dry-run, got it without; metrics.jsonl is the record of a run");
  Context context(request.threads);
  std::unique_ptr<Task> task = task_of(recipe);
  const ModelConfig model = model_of(recipe, task->shape());
  if (model.kind == ModelKind::embedding)
    throw Error(recipe.model.from + ": gives vectors and has no labels to train on: expected a task of classes, got " +
                recipe.task);
  const MemoryEstimate memory = memory_of(recipe.train, model, task->shape().length);
  // Before anything is made of it: a step that does not fit may take the whole machine down.
  if (const std::string problem = too_large(memory, request.dry_run ? 1 : kMemoryFactor); !problem.empty()) throw Error(problem);
  if (const std::string problem = too_large(memory, 1); !problem.empty()) std::cerr << "isomer train: " << problem << "\n";
  Session session(recipe, std::move(task), context);
  const std::optional<StartReport> started = start_of(request, folder, session);
  if (request.dry_run) return print_plan(request, session, memory, context);
  const OutlivesItsReader output;  // the record is metrics.jsonl
  const RunFolder run = folder_for(request, recipe, folder);
  FileLock claim = run.claim();
  if (started) {
    write_text(run.start_path(), to_json(*started));
    print_start(*started);
  }
  if (request.resume) {
    go_on(request, session, run, claim);
    std::cout << "going on after step " << session.steps_done() << std::endl;
  }
  const std::unique_ptr<Tensorboard> board = board_for(request, run);
  Display display(recipe);
  TrainEvents events{.step = [&](const StepReport& report, double rate) { display.step(report, rate); },
                     .evaluated = [&](Index step, const EvalReport& eval) { display.evaluated(step, eval); }};
  if (board) events.recorded = [&](const MetricsLine& line) { board->add(line); };
  try {
    const TrainOutcome outcome = train(session, run, events, watch_for_interrupt());
    display.clear();
    report_end(outcome, request, folder);
    return outcome.end == TrainOutcome::End::stopped ? kFailed : kDone;
  } catch (const Error& problem) {  // a loss that is not finite, a full disk
    throw RunFailed(std::string(problem.what()) +
                    (run.has_checkpoint() ? "; the last checkpoint in " + folder + " is intact" : ""));
  }
}
}  // namespace

Command train_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("recipe", request->recipe, "TOML file with model, task and training").required();
  options.set(request->settings, "Override a key, e.g. train.steps=100; may be repeated");
  options.add("--out", request->out, "Folder of the run [runs/NAME; where that is taken, runs/NAME-2 and so on]").not_empty();
  options
      .add("--from", request->from,
           "Begin with this run or model: a recipe without a model has its, to any other go the weights that fit")
      .value("MODEL");
  options.flag("--resume", request->resume, "Go on with the run in --out; without one, with the last of this recipe in runs/");
  options.flag("--fall-back", request->fall_back, "Resume from the last checkpoint that can be read; damaged ones are set aside");
  options.flag("--changed-data", request->changed_data, "Resume even if the files of the task are not as they were");
  options.flag("--print-config", request->print_config, "Print the recipe with every option of model, task and mixers, and stop");
  options.flag("--dry-run", request->dry_run, "Print parameters, memory and the time to expect, and stop");
  options.table(request->output);
  options.flag("--tensorboard", request->tensorboard, "Write event files for TensorBoard too, in RUN/tensorboard");
  options.flag("--stats", request->stats, "Print memory and the share of time that data took");
  options.threads(request->threads);
  options.footer("Example:\n  isomer train recipes/mqar.toml --set model.layers=gla,gla --out runs/gla");
  return [request] { return train_request(*request); };
}

}  // namespace isomer::cli

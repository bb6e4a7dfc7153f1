#include "isomer/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/base/stopwatch.h"
#include "isomer/io/json.h"
#include "isomer/train/stopping.h"

namespace isomer {

namespace {
// Over how many steps tokens per second are averaged.
constexpr Index kRateSteps = 16;

/// How often, by default so many times a run.
Index interval(Index given, Index steps, Index times) { return given > 0 ? given : std::max<Index>(1, steps / times); }

/// What a checkpoint remembers of the loop itself: "extra" in state.json.
struct Progress {
  Index step = 0;
  std::size_t lines = 0;
  double seconds = 0;
  bool finished = false;  // every step is done, or it has learned enough
  std::optional<EvalReport> last_eval = {};

  [[nodiscard]] std::string text() const {
    return Json::object({{"finished", finished}, {"metrics_lines", lines}, {"seconds", seconds}}).dump();
  }
  /// Is there nothing more to do? The recipe may have got more steps, or another goal.
  [[nodiscard]] bool is_over(const TrainRecipe& recipe, const Stopping& stopping) const {
    return finished && (step >= recipe.steps || stopping.reached_goal() || stopping.out_of_patience());
  }
};

/// As a checkpoint has it.
Progress progress_of(const std::string& state, const std::string& file) {
  try {
    const Json json = Json::parse(state, "file");
    const Json& extra = json.at("extra");
    const Json* const finished = extra.find("finished");
    return {.step = json.at("step").integer(),
            .lines = std::size_t(extra.at("metrics_lines").integer()),
            .seconds = extra.at("seconds").number(),
            .finished = finished != nullptr && finished->boolean()};
  } catch (const Error& problem) {
    throw Error(file + ": " + problem.what());
  }
}
Progress last_progress(const RunFolder& folder) {
  return progress_of(folder.latest_text("state.json"), checkpoint_folder(folder.path(), folder.latest_step()) + "/state.json");
}

/// What is looked at during training: the test is for the end, where a task keeps other examples for it.
Split watched_split(const Task& task) { return task.has_validation() ? Split::validation : Split::test; }

/// The evaluation that the checkpoint called best is of: of equal ones that with the lower loss.
struct Best {
  Index step = 0;
  double value = 0, loss = 0;

  void look(const EvalLine& eval) {
    if (!std::isfinite(eval.value)) return;
    const bool better = lower_is_better(eval.metric) ? eval.value < value : eval.value > value;
    if (step == 0 || better || (eval.value == value && eval.loss < loss)) *this = {eval.step, eval.value, eval.loss};
  }
};

class Loop {
 public:
  Loop(Session& session, const RunFolder& folder, const TrainEvents& events)
      : session_(session),
        folder_(folder),
        events_(events),
        recipe_(session.recipe().train),
        stopping_(recipe_, lower_is_better(session.task().shape().metric)) {
    for (const MetricsLine& line : folder.metrics().read()) {
      if (const auto* look = std::get_if<EvalLine>(&line)) {
        stopping_.enough(look->value);
        best_.look(*look);
      }
      ++progress_.lines;
    }
    if (!folder.has_checkpoint()) return;
    const Progress last = last_progress(folder);
    before_ = last.seconds;
    progress_.finished = last.is_over(recipe_, stopping_);
  }

  TrainOutcome run(const std::atomic<bool>& stop) {
    const Index log = interval(recipe_.log_every, recipe_.steps, 200), evaluate = interval(recipe_.eval_every, recipe_.steps, 10),
                save = interval(recipe_.save_every, recipe_.steps, 5);
    TrainOutcome outcome;
    if (progress_.finished && session_.steps_done() < recipe_.steps) outcome.end = early_end();
    while (session_.steps_done() < recipe_.steps && !progress_.finished) {
      const StepReport report = session_.step();
      outcome.data_seconds += report.data_seconds;
      count(report);
      const bool last = report.step == recipe_.steps;
      if (report.step % log == 0 || last) write(report);
      bool enough = false;
      if (report.step % evaluate == 0 || last) enough = look(report.step);
      progress_.finished = last || enough;
      const bool stopping = stop.load();
      if (report.step % save == 0 || last || enough || stopping || improved() || late()) keep(report.step);
      if (!last && enough) outcome.end = early_end();
      if (!last && !enough && stopping) outcome.end = TrainOutcome::End::stopped;
      if (stopping) break;
    }
    outcome.steps = session_.steps_done();
    outcome.seconds = seconds();
    outcome.last_eval = progress_.last_eval;
    return outcome;
  }

  void record_failure(const std::string& what) {
    try {
      append(FailedLine{.step = session_.steps_done() + 1, .reason = what, .seconds = seconds()});
    } catch (const Error&) {
      // The disk that fails the run fails this too, and what failed first is told anyway.
    }
  }

 private:
  [[nodiscard]] double seconds() const { return before_ + watch_.seconds(); }

  void count(const StepReport& report) {
    tokens_ += double(report.tokens);
    seconds_ += report.seconds;
    rate_ = tokens_ / seconds_;
    if (events_.step) events_.step(report, rate_);
    // Now and then from the start, and first after step 1, which sets up memory and says little about the others.
    if (report.step % kRateSteps == 1) tokens_ = seconds_ = 0;
  }

  void append(const MetricsLine& line) {
    folder_.metrics().append(line);
    ++progress_.lines;
    if (events_.recorded) events_.recorded(line);
  }

  void write(const StepReport& report) {
    append(StepLine{.step = report.step,
                    .loss = report.loss,
                    .lr = report.lr,
                    .gradient_norm = report.gradient_norm,
                    .tokens_per_second = rate_,
                    .seconds = seconds()});
  }

  [[nodiscard]] TrainOutcome::End early_end() const {
    return stopping_.reached_goal() ? TrainOutcome::End::reached_goal : TrainOutcome::End::stopped_improving;
  }

  /// Evaluates; has it learned enough?
  bool look(Index step) {
    const EvalReport eval = session_.evaluate({.examples = recipe_.eval_examples, .split = watched_split(session_.task())});
    progress_.last_eval = eval;
    const EvalLine line{.step = step,
                        .loss = eval.loss,
                        .value = eval.value,
                        .metric = eval.metric,
                        .examples = eval.examples,
                        .seconds = seconds()};
    best_.look(line);
    append(line);
    if (events_.evaluated) events_.evaluated(step, eval);
    return stopping_.enough(eval.value);
  }

  void keep(Index step) {
    progress_.seconds = seconds();
    folder_.save(session_.checkpoint(progress_.text()), recipe_.keep);
    if (improved()) folder_.mark_best(step);
    since_save_ = Stopwatch();
    if (events_.saved) events_.saved(step);
  }

  /// Is the step just done that of the best evaluation, and is that to be kept?
  [[nodiscard]] bool improved() const { return recipe_.keep_best && best_.step == session_.steps_done(); }
  [[nodiscard]] bool late() const { return recipe_.save_minutes > 0 && since_save_.seconds() > 60 * recipe_.save_minutes; }

  Session& session_;
  const RunFolder& folder_;
  const TrainEvents& events_;
  const TrainRecipe& recipe_;
  Stopping stopping_;
  Best best_;
  Stopwatch watch_, since_save_;
  Progress progress_;
  double before_ = 0;                           // seconds of earlier parts of the run
  double tokens_ = 0, seconds_ = 0, rate_ = 0;  // of the last few steps
};
}  // namespace

TrainOutcome train(Session& session, const RunFolder& folder, const TrainEvents& events, const std::atomic<bool>& stop) {
  Loop loop(session, folder, events);
  try {
    return loop.run(stop);
  } catch (const Error& problem) {
    loop.record_failure(problem.what());
    throw;
  }
}

RunFolder start_run(const std::string& path, Session& session) {
  RunFolder folder = RunFolder::create(path, to_toml(session.recipe()));
  folder.save(session.checkpoint(Progress{}.text()), session.recipe().train.keep);
  return folder;
}

namespace {
/// A checkpoint, with the session in its place.
Checkpoint load_into(Session& session, const RunFolder& folder, Index step) {
  try {
    Checkpoint loaded = folder.load(step);
    session.resume(loaded);
    (void)progress_of(loaded.state, loaded.file("state.json"));
    return loaded;
  } catch (const NotFinite&) {
    throw;
  } catch (const OtherModel&) {
    throw;
  } catch (const Error& problem) {
    throw DamagedCheckpoint(problem.what());
  }
}

/// A checkpoint that cannot be gone on from, and why.
struct Broken {
  Index step;
  std::string problem;
};

/// The last checkpoint, or with fall_back the last that can be read, and those that come after it.
std::pair<Checkpoint, std::vector<Broken>> load_last(Session& session, const RunFolder& folder, bool fall_back) {
  std::vector<Index> steps = folder.checkpoints();
  std::vector<Broken> broken;
  for (;; steps.pop_back()) {
    try {
      return {load_into(session, folder, steps.back()), std::move(broken)};
    } catch (const OtherModel&) {
      throw;
    } catch (const Error& problem) {
      if (!fall_back || steps.size() < 2) throw;
      broken.push_back({steps.back(), problem.what()});
    }
  }
}
}  // namespace

void resume(Session& session, const RunFolder& folder, const ResumeOptions& options) {
  folder.tidy();
  if (!folder.has_checkpoint()) return folder.metrics().keep(0);
  const auto [last, broken] = load_last(session, folder, options.fall_back);
  if (!options.changed_data && !session.has_data_of(last))
    throw Error(folder.path() + ": expected the data that the run was trained on, got others for the task " +
                session.recipe().task + "; --changed-data goes on with them");
  const Index steps = session.recipe().train.steps;
  require(session.steps_done() <= steps, folder.path().c_str(), "expected train.steps of at least ", session.steps_done(),
          ", which are done, got ", steps);
  // Only now that the run goes on: what is refused leaves the folder as it was.
  for (const Broken& one : broken) {
    if (options.set_aside) options.set_aside(one.problem);
    folder.set_aside(one.step);
  }
  if (!broken.empty()) folder.tidy();
  folder.metrics().keep(last_progress(folder).lines);
}

RunState state_of(const RunFolder& folder) {
  if (folder.is_claimed()) return RunState::running;
  const std::vector<MetricsLine> lines = folder.metrics().read();
  if (folder.has_checkpoint()) {
    const TrainRecipe recipe = read_recipe(folder.recipe_path()).train;
    std::optional<Stopping> stopping;
    for (const MetricsLine& line : lines) {
      const auto* look = std::get_if<EvalLine>(&line);
      if (look == nullptr) continue;
      if (!stopping) stopping.emplace(recipe, lower_is_better(look->metric));
      stopping->enough(look->value);
    }
    if (last_progress(folder).is_over(recipe, stopping.value_or(Stopping(recipe, false)))) return RunState::finished;
  }
  return !lines.empty() && std::holds_alternative<FailedLine>(lines.back()) ? RunState::failed : RunState::stopped;
}

}  // namespace isomer

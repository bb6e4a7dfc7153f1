#include "isomer/train/trainer.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "isomer/base/stopwatch.h"

namespace isomer {

namespace {
using nlohmann::json;

// Over how many steps tokens per second are averaged.
constexpr Index kRateSteps = 16;

/// How often, by default so many times a run.
Index interval(Index given, Index steps, Index times) { return given > 0 ? given : std::max<Index>(1, steps / times); }

/// What a checkpoint remembers of the loop itself: "extra" in state.json.
struct Progress {
  std::size_t lines = 0;
  double seconds = 0;
  bool finished = false;  // every step is done, or the goal is reached
  std::optional<EvalReport> last_eval = {};

  [[nodiscard]] std::string text() const {
    return json{{"metrics_lines", lines}, {"seconds", seconds}, {"finished", finished}}.dump();
  }
};

/// As the last checkpoint has it.
Progress last_progress(const RunFolder& folder) {
  try {
    const json extra = json::parse(folder.latest_text("state.json")).at("extra");
    return {.lines = extra.at("metrics_lines").get<std::size_t>(),
            .seconds = extra.at("seconds").get<double>(),
            .finished = extra.value("finished", false)};
  } catch (const json::exception& problem) {
    throw Error(folder.path() + ": state.json: " + problem.what());
  }
}

class Loop {
 public:
  Loop(Session& session, const RunFolder& folder, const TrainEvents& events)
      : session_(session), folder_(folder), events_(events), recipe_(session.recipe().train) {
    progress_.lines = folder.metrics().size();
    if (!folder.has_checkpoint()) return;
    const Progress last = last_progress(folder);
    before_ = last.seconds;
    progress_.finished = last.finished;
  }

  TrainOutcome run(const std::atomic<bool>& stop) {
    const Index log = interval(recipe_.log_every, recipe_.steps, 200), evaluate = interval(recipe_.eval_every, recipe_.steps, 10),
                save = interval(recipe_.save_every, recipe_.steps, 5);
    TrainOutcome outcome;
    if (progress_.finished && session_.steps_done() < recipe_.steps) outcome.end = TrainOutcome::End::reached_goal;
    while (session_.steps_done() < recipe_.steps && !progress_.finished) {
      const StepReport report = session_.step();
      outcome.data_seconds += report.data_seconds;
      count(report);
      const bool last = report.step == recipe_.steps;
      if (report.step % log == 0 || last) write(report);
      bool goal = false;
      if (report.step % evaluate == 0 || last) goal = look(report.step);
      progress_.finished = last || goal;
      const bool stopping = stop.load();
      if (report.step % save == 0 || last || goal || stopping) keep(report.step);
      if (!last && goal) outcome.end = TrainOutcome::End::reached_goal;
      if (!last && !goal && stopping) outcome.end = TrainOutcome::End::stopped;
      if (stopping) break;
    }
    outcome.steps = session_.steps_done();
    outcome.seconds = seconds();
    outcome.last_eval = progress_.last_eval;
    return outcome;
  }

  void record_failure(const std::string& what) {
    try {
      append({{"step", session_.steps_done() + 1}, {"failed", what}, {"seconds", seconds()}});
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

  void append(const json& line) {
    const std::string text = line.dump();
    folder_.append(text);
    ++progress_.lines;
    if (events_.recorded) events_.recorded(text);
  }

  void write(const StepReport& report) {
    append({{"step", report.step},
            {"loss", report.loss},
            {"lr", report.lr},
            {"grad_norm", report.gradient_norm},
            {"tokens_per_s", rate_},
            {"seconds", seconds()}});
  }

  /// Evaluates; is the goal reached?
  bool look(Index step) {
    const EvalReport eval = session_.evaluate({.examples = recipe_.eval_examples});
    progress_.last_eval = eval;
    append({{"step", step},
            {"eval", {{"loss", eval.loss}, {"metric", name_of(eval.metric)}, {"value", eval.value}, {"examples", eval.examples}}},
            {"seconds", seconds()}});
    if (events_.evaluated) events_.evaluated(step, eval);
    if (recipe_.stop_at <= 0) return false;
    return lower_is_better(eval.metric) ? eval.value <= recipe_.stop_at : eval.value >= recipe_.stop_at;
  }

  void keep(Index step) {
    progress_.seconds = seconds();
    folder_.save(session_.checkpoint(progress_.text()), recipe_.keep);
    if (events_.saved) events_.saved(step);
  }

  Session& session_;
  const RunFolder& folder_;
  const TrainEvents& events_;
  const TrainRecipe& recipe_;
  Stopwatch watch_;
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

void resume(Session& session, const RunFolder& folder) {
  if (!folder.has_checkpoint()) return folder.keep_metrics(0);
  session.resume(folder.load_latest());
  folder.keep_metrics(last_progress(folder).lines);
}

std::string_view name_of(RunState state) {
  constexpr std::array<std::string_view, 4> kNames{"running", "finished", "failed", "stopped"};
  return kNames[std::size_t(state)];
}

RunState state_of(const RunFolder& folder) {
  if (folder.is_claimed()) return RunState::running;
  if (folder.has_checkpoint() && last_progress(folder).finished) return RunState::finished;
  const std::vector<std::string> lines = folder.metrics();
  const json last = lines.empty() ? json() : json::parse(lines.back(), nullptr, false);
  return last.is_object() && last.contains("failed") ? RunState::failed : RunState::stopped;
}

}  // namespace isomer

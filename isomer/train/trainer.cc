#include "isomer/train/trainer.h"

#include <algorithm>
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
  std::optional<EvalReport> last_eval = {};

  [[nodiscard]] std::string text() const { return json{{"metrics_lines", lines}, {"seconds", seconds}}.dump(); }
};

/// As the last checkpoint has it.
Progress last_progress(const RunFolder& folder) {
  try {
    const json extra = json::parse(folder.latest_state()).at("extra");
    return {.lines = extra.at("metrics_lines").get<std::size_t>(), .seconds = extra.at("seconds").get<double>()};
  } catch (const json::exception& problem) {
    throw Error(folder.path() + ": state.json: " + problem.what());
  }
}

class Loop {
 public:
  Loop(Session& session, const RunFolder& folder, const TrainEvents& events)
      : session_(session), folder_(folder), events_(events), recipe_(session.recipe().train) {
    progress_.lines = folder.metrics().size();
    if (folder.has_checkpoint()) before_ = last_progress(folder).seconds;
  }

  TrainOutcome run(const std::atomic<bool>& stop) {
    const Index log = interval(recipe_.log_every, recipe_.steps, 200), evaluate = interval(recipe_.eval_every, recipe_.steps, 10),
                save = interval(recipe_.save_every, recipe_.steps, 5);
    TrainOutcome outcome;
    while (session_.steps_done() < recipe_.steps) {
      const StepReport report = session_.step();
      outcome.data_seconds += report.data_seconds;
      count(report);
      const bool last = report.step == recipe_.steps;
      if (report.step % log == 0 || last) write(report);
      bool goal = false;
      if (report.step % evaluate == 0 || last) goal = look(report.step);
      const bool stopping = stop.load();
      if (report.step % save == 0 || last || goal || stopping) keep(report.step);
      if (!last && goal) outcome.end = TrainOutcome::End::reached_goal;
      if (!last && !goal && stopping) outcome.end = TrainOutcome::End::stopped;
      if (goal || stopping) break;
    }
    outcome.steps = session_.steps_done();
    outcome.seconds = seconds();
    outcome.last_eval = progress_.last_eval;
    return outcome;
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
    folder_.append(line.dump());
    ++progress_.lines;
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
    return eval.metric == Metric::squared_error || eval.metric == Metric::bits_per_token ? eval.value <= recipe_.stop_at
                                                                                         : eval.value >= recipe_.stop_at;
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
  return Loop(session, folder, events).run(stop);
}

void resume(Session& session, const RunFolder& folder) {
  if (!folder.has_checkpoint()) return folder.keep_metrics(0);
  session.resume(folder.load_latest());
  folder.keep_metrics(last_progress(folder).lines);
}

}  // namespace isomer

#include "cli/sweep_runs.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <deque>
#include <fstream>
#include <iostream>
#include <thread>

#include "cli/children.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/base/stopwatch.h"
#include "isomer/train/trainer.h"

namespace isomer::cli {

namespace {
std::string log_of(const SweepRun& run) { return run.folder + "/log.txt"; }

/// The last line that the program printed: why it failed.
std::string last_words(const SweepRun& run, int status) {
  std::ifstream log(log_of(run));
  std::string last;
  for (std::string line; std::getline(log, line);)
    if (!line.empty()) last = line;
  const std::string prefix = "isomer train: ";
  if (status == 1 || status == 2) return last.starts_with(prefix) ? last.substr(prefix.size()) : last;
  return status > 128 ? "ended by signal " + std::to_string(status - 128) : "ended with status " + std::to_string(status);
}

/// How far a run is, from its last line of metrics.
struct Position {
  Index step = 0;
  double loss = 0;
};

Position position_of(const SweepRun& run) {
  Position at;
  if (!RunFolder::is_run(run.folder)) return at;
  for (const MetricsLine& line : RunFolder::open(run.folder).metrics().read()) {
    at.step = std::max(at.step, step_of(line));
    if (const auto* step = std::get_if<StepLine>(&line)) at.loss = step->loss;
  }
  return at;
}

class Crew {
 public:
  Crew(std::vector<SweepRun>& runs, const SweepOptions& options, const std::function<void()>& ended)
      : runs_(runs), options_(options), ended_(ended), terminal_(::isatty(STDERR_FILENO) != 0) {
    for (SweepRun& run : runs) {
      const RunState state = RunFolder::is_run(run.folder) ? state_of(RunFolder::open(run.folder)) : RunState::stopped;
      if (state == RunState::finished || state == RunState::running)  // running: another process is at it
        ++skipped_;
      else
        waiting_.push_back({&run, share_of(run, position_of(run))});
    }
    before_ = share_at_rest();
  }

  bool work(const std::atomic<bool>& stop) {
    if (skipped_ > 0) std::cerr << skipped_ << " of " << runs_.size() << " runs are there already\n";
    const std::size_t jobs = std::min(std::size_t(options_.jobs), waiting_.size());
    threads_ = std::max(1, options_.threads / std::max(1, int(jobs)));
    bool told = false;
    while (!busy_.empty() || (!waiting_.empty() && !stop)) {
      while (busy_.size() < jobs && !waiting_.empty() && !stop) start();
      if (stop && !told) {
        told = true;
        for (const Busy& one : busy_) ::kill(one.child, SIGINT);
      }
      collect(stop);
      if (terminal_) progress_.show(line(stop));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return stop;
  }

 private:
  struct Waiting {
    SweepRun* run;
    double share;  // of its steps that are done already
  };
  struct Busy {
    SweepRun* run;
    pid_t child;
  };

  void start() {
    SweepRun& run = *waiting_.front().run;
    waiting_.pop_front();
    run.problem.clear();
    if (!RunFolder::is_run(run.folder)) (void)RunFolder::create(run.folder, to_toml(run.point.recipe));
    std::vector<std::string> arguments{"train",     run.folder + "/recipe.toml", "--out", run.folder, "--resume",
                                       "--threads", std::to_string(threads_)};
    if (options_.tensorboard) arguments.emplace_back("--tensorboard");
    busy_.push_back({&run, start_child(arguments, log_of(run))});
    if (!terminal_) std::cerr << run.point.name << " starts\n";
  }

  void collect(const std::atomic<bool>& stop) {
    while (const std::optional<ChildEnd> end = next_child_end()) {
      const auto found = std::ranges::find(busy_, end->child, &Busy::child);
      if (found == busy_.end()) continue;
      SweepRun& run = *found->run;
      busy_.erase(found);
      if (end->status != 0 && !stop) run.problem = last_words(run, end->status);
      if (terminal_) progress_.show("");
      std::cerr << run.point.name << (end->status == 0 ? " is done" : stop ? " has stopped" : " failed: " + run.problem) << "\n";
      ended_();
    }
  }

  static double share_of(const SweepRun& run, const Position& at) {
    return double(at.step) / double(run.point.recipe.train.steps);
  }
  /// Runs' worth of steps that are done, but for those of the busy ones.
  [[nodiscard]] double share_at_rest() const {
    auto done = double(runs_.size() - waiting_.size() - busy_.size());
    for (const Waiting& one : waiting_) done += one.share;
    return done;
  }

  [[nodiscard]] std::string line(bool stopping) const {
    double done = share_at_rest();
    std::string each;
    for (const Busy& one : busy_) {
      const GridPoint& point = one.run->point;
      const Position at = position_of(*one.run);
      done += share_of(*one.run, at);
      each += "  | " + point.name + " " + std::to_string(at.step) + "/" + std::to_string(point.recipe.train.steps);
      if (at.step > 0) each += " loss " + text_of(at.loss);
    }
    const std::size_t all = runs_.size();
    std::string text = stopping ? "stopping, " : "";
    text += std::to_string(all - waiting_.size() - busy_.size()) + "/" + std::to_string(all) + " done";
    if (done > before_) text += "  left " + clock_of(watch_.seconds() * (double(all) - done) / (done - before_));
    return text + each;
  }

  std::vector<SweepRun>& runs_;
  const SweepOptions& options_;
  const std::function<void()>& ended_;
  std::deque<Waiting> waiting_;
  std::vector<Busy> busy_;
  std::size_t skipped_ = 0;
  int threads_ = 1;
  bool terminal_;
  double before_ = 0;
  Stopwatch watch_;
  Progress progress_;
};
}  // namespace

std::vector<SweepRun> sweep_runs(const std::vector<GridPoint>& points, const std::string& out) {
  std::vector<SweepRun> runs;
  for (const GridPoint& point : points) {
    runs.push_back({point, out + "/" + point.name});
    const SweepRun& run = runs.back();
    if (RunFolder::is_run(run.folder) && to_toml(read_recipe(run.folder + "/recipe.toml")) != to_toml(point.recipe))
      throw Error(run.folder + ": expected a run of this sweep, got one of another recipe; take another --out");
  }
  return runs;
}

bool train_all(std::vector<SweepRun>& runs, const SweepOptions& options, const std::function<void()>& ended) {
  return Crew(runs, options, ended).work(watch_for_interrupt());
}

}  // namespace isomer::cli

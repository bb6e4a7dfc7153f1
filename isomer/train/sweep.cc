#include "isomer/train/sweep.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <fstream>
#include <thread>

#include "isomer/base/error.h"
#include "isomer/base/stopwatch.h"
#include "isomer/train/child_process.h"
#include "isomer/train/tensorboard.h"
#include "isomer/train/trainer.h"

namespace isomer {

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

/// How far a run is.
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

double share_of(const SweepRun& run, const Position& at) { return double(at.step) / double(run.point.recipe.train.steps); }

RunFolder folder_of(const SweepRun& run) {
  return RunFolder::is_run(run.folder) ? RunFolder::open(run.folder) : RunFolder::create(run.folder, to_toml(run.point.recipe));
}

class Crew {
 public:
  Crew(std::vector<SweepRun>& runs, const SweepOptions& options, const SweepEvents& events, const std::atomic<bool>& stop)
      : runs_(runs), options_(options), events_(events), stop_(stop) {
    for (SweepRun& run : runs) {
      const RunState state = RunFolder::is_run(run.folder) ? state_of(RunFolder::open(run.folder)) : RunState::stopped;
      if (state == RunState::finished || state == RunState::running)  // running: another process is at it
        ++skipped_;
      else
        waiting_.push_back({&run, share_of(run, position_of(run))});
    }
    before_ = share_at_rest();
  }

  bool work() {
    if (events_.found) events_.found(skipped_, runs_.size());
    if (options_.program.empty())
      train_here();
    else
      train_beside();
    return stop_;
  }

 private:
  struct Waiting {
    SweepRun* run;
    double share;  // of its steps that are done already
  };
  struct Busy {
    SweepRun* run;
    Child child;
  };

  /// Each in a process of its own.
  void train_beside() {
    const std::size_t jobs = std::min(std::size_t(options_.jobs), waiting_.size());
    const int threads = std::max(1, options_.threads / std::max(1, int(jobs)));
    bool told = false;
    while (!busy_.empty() || (!waiting_.empty() && !stop_)) {
      while (busy_.size() < jobs && !waiting_.empty() && !stop_) start(threads);
      if (stop_ && !told) {
        told = true;
        for (const Busy& one : busy_) one.child.interrupt();
      }
      collect();
      if (events_.progress) report(positions());
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  SweepRun& next() {
    SweepRun& run = *waiting_.front().run;
    waiting_.pop_front();
    run.problem.clear();
    return run;
  }

  void start(int threads) {
    SweepRun& run = next();
    (void)folder_of(run);
    std::vector<std::string> arguments{"train",     run.folder + "/recipe.toml", "--out", run.folder, "--resume",
                                       "--threads", std::to_string(threads)};
    if (options_.tensorboard) arguments.emplace_back("--tensorboard");
    busy_.push_back({&run, Child::start(options_.program, arguments, log_of(run))});
    if (events_.started) events_.started(run);
  }

  void collect() {
    for (std::size_t i = 0; i < busy_.size();) {
      if (!busy_[i].child.ended()) {
        ++i;
        continue;
      }
      SweepRun& run = *busy_[i].run;
      const int status = busy_[i].child.status();
      busy_.erase(busy_.begin() + std::ptrdiff_t(i));
      if (status != 0 && !stop_) run.problem = last_words(run, status);
      end(run, status == 0);
    }
  }

  void end(const SweepRun& run, bool well) {
    using End = SweepEvents::End;
    if (events_.ended) events_.ended(run, well ? End::done : stop_ ? End::stopped : End::failed);
  }

  /// In this process, one after the other.
  void train_here() {
    while (!waiting_.empty() && !stop_) {
      SweepRun& run = next();
      if (events_.started) events_.started(run);
      try {
        end(run, train_one(run).end != TrainOutcome::End::stopped);
      } catch (const Error& problem) {
        run.problem = problem.what();
        end(run, false);
      }
    }
  }

  TrainOutcome train_one(const SweepRun& run) {
    Context context(options_.threads);
    const RunFolder folder = folder_of(run);
    const FileLock claim = folder.claim();
    Session session(run.point.recipe, context);
    resume(session, folder);
    std::unique_ptr<Tensorboard> board;
    if (options_.tensorboard) board = std::make_unique<Tensorboard>(folder);
    TrainEvents events;
    if (board) events.recorded = [&](const MetricsLine& line) { board->add(line); };
    if (events_.progress)
      events.step = [&](const StepReport& step, double) {
        report({{run.point.name, step.step, run.point.recipe.train.steps, step.loss}});
      };
    return train(session, folder, events, stop_);
  }

  /// Runs' worth of steps that are done, but for those of the busy ones.
  [[nodiscard]] double share_at_rest() const {
    auto done = double(runs_.size() - waiting_.size() - busy_.size());
    for (const Waiting& one : waiting_) done += one.share;
    return done;
  }

  [[nodiscard]] std::vector<SweepProgress::Busy> positions() const {
    std::vector<SweepProgress::Busy> all;
    for (const Busy& one : busy_) {
      const Position at = position_of(*one.run);
      all.push_back({one.run->point.name, at.step, one.run->point.recipe.train.steps, at.loss});
    }
    return all;
  }

  void report(std::vector<SweepProgress::Busy> busy) const {
    const std::size_t all = runs_.size();
    // A run that trains here is busy without a process.
    double done = share_at_rest() - double(busy.size() - busy_.size());
    for (const SweepProgress::Busy& one : busy) done += double(one.step) / double(one.steps);
    SweepProgress progress{.done = all - waiting_.size() - busy.size(), .all = all, .busy = std::move(busy), .stopping = stop_};
    if (done > before_) progress.seconds_left = watch_.seconds() * (double(all) - done) / (done - before_);
    events_.progress(progress);
  }

  std::vector<SweepRun>& runs_;
  const SweepOptions& options_;
  const SweepEvents& events_;
  const std::atomic<bool>& stop_;
  std::deque<Waiting> waiting_;
  std::vector<Busy> busy_;
  std::size_t skipped_ = 0;
  double before_ = 0;
  Stopwatch watch_;
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

bool train_all(std::vector<SweepRun>& runs, const SweepOptions& options, const SweepEvents& events,
               const std::atomic<bool>& stop) {
  return Crew(runs, options, events, stop).work();
}

}  // namespace isomer

#include "isomer/study/study.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "isomer/base/error.h"
#include "isomer/base/machine.h"
#include "isomer/base/stopwatch.h"
#include "isomer/io/file_lock.h"
#include "isomer/io/table.h"
#include "isomer/io/text.h"
#include "isomer/study/kept.h"
#include "isomer/study/lab.h"

namespace isomer::study {

namespace {

/// One claim on its way.
struct Work {
  const Claim* claim = nullptr;
  std::vector<Cell> cells = {};
  std::size_t missing = 0;                  // cells that are not done
  double seconds = 0;                       // of processor time, of its cells or its own measurement
  std::map<std::string, double> runs = {};  // of its cells, by key
  bool decided = false;
  Outcome outcome = {};
};

/// What a thread does next: a cell that claims wait for, or an analytic claim.
struct Task {
  Cell cell = {};
  std::string key = {};
  std::vector<Work*> waiting = {};
  Work* analytic = nullptr;
  double share = 0;
};

class Runner {
 public:
  Runner(std::span<const Claim* const> claims, const StudyOptions& options, const OnProgress& progress)
      : options_(options), progress_(progress), kept_(options.folder), isa_(chosen_isa()), done_(isa_) {
    for (const Claim* claim : claims) add(*claim);
  }

  std::vector<Outcome> run() {
    report({});
    const int cores = int(std::max(1u, std::thread::hardware_concurrency()));
    const std::size_t jobs = std::min<std::size_t>(std::size_t(options_.jobs > 0 ? options_.jobs : cores), tasks_.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < jobs; ++i) threads.emplace_back([this] { serve(); });
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    std::vector<Outcome> all;
    for (Work& work : works_)
      if (work.decided) all.push_back(std::move(work.outcome));
    return all;
  }

 private:
  void add(const Claim& claim) {
    Work& work = works_.emplace_back();
    work.claim = &claim;
    if (!claim.trained())
      tasks_.push_back({.analytic = &work});
    else
      advance(work);
  }

  /// All of the claim's cells so far are done: queues those that it needs now, or decides it when there are none.
  void advance(Work& work) {
    for (std::size_t before = work.cells.size() + 1; work.missing == 0 && before != work.cells.size();) {
      before = work.cells.size();
      work.cells = work.claim->cells(options_.budget, done_);
      for (const Cell& cell : work.cells)
        if (!done_.has(cell)) queue(cell, work);
    }
    if (work.missing == 0) decide(work);
  }

  void queue(const Cell& cell, Work& work) {
    const std::string key = key_of(cell, isa_);
    if (const auto queued = std::ranges::find(tasks_, key, &Task::key); queued != tasks_.end()) {
      if (std::ranges::find(queued->waiting, &work) == queued->waiting.end()) queued->waiting.push_back(&work), ++work.missing;
    } else if (auto kept = kept_.find(key)) {
      done_.add(std::move(*kept));
      ++cells_kept_;
    } else {
      tasks_.push_back({.cell = cell, .key = key, .waiting = {&work}});
      ++work.missing;
    }
  }

  void serve() {
    Context context(1, isa_);
    for (Task* task = next(); task != nullptr; task = next()) {
      serve(*task, context);
      const std::scoped_lock lock(mutex_);
      --busy_;
      changed_.notify_all();
    }
  }

  void serve(Task& task, Context& context) {
    try {
      if (task.analytic != nullptr)
        measure(task, context);
      else
        train(task, context);
    } catch (const std::exception& problem) {
      // What is written cannot be: the others need not go on. The request was right.
      const std::scoped_lock lock(mutex_);
      if (!failure_) failure_ = std::make_exception_ptr(std::runtime_error(problem.what()));
      stopped_ = true;
    }
  }

  /// Waits while there is nothing to do and a cell is under way: it may be followed by others.
  Task* next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || at_ < tasks_.size() || busy_ == 0; });
    if (stopped_ || at_ == tasks_.size()) return nullptr;
    ++busy_;
    return &tasks_[at_++];
  }

  void measure(Task& task, Context& context) {
    Work& work = *task.analytic;
    const ProcessorTime watch;
    Evidence found;
    std::string failure;
    try {
      work.claim->measure(options_.budget, context, found);
    } catch (const Error& problem) {
      failure = problem.what();
    }
    const std::scoped_lock lock(mutex_);
    work.seconds = watch.seconds();
    finish(work, found, failure);
    task.share = 1;
    report(work.claim->id);
  }

  void train(Task& task, Context& context) {
    CellResult result;
    std::string failure;
    try {
      result = run_cell(task.cell, context, [&](double share) {
        const std::scoped_lock lock(mutex_);
        task.share = share;
        if (!stopped_ && last_report_.seconds() > 0.2) report({});
        return !stopped_;
      });
    } catch (const Error& problem) {
      failure = problem.what();
    }
    const std::scoped_lock lock(mutex_);
    if (stopped_) return;
    task.share = 1;
    if (failure.empty()) kept_.keep(result);
    if (failure.empty()) done_.add(std::move(result));
    ++cells_done_;
    for (Work* work : task.waiting) {
      if (!failure.empty()) finish(*work, {}, failure);
      if (--work->missing == 0 && !work->decided) advance(*work);
    }
    report({});
  }

  void decide(Work& work) {
    Evidence found;
    std::string failure;
    try {
      work.claim->read(options_.budget, done_, found);
      for (const Cell& cell : work.cells) {
        const CellResult& run = done_(cell);
        work.runs.emplace(run.key, run.seconds);
        work.seconds += run.seconds;
      }
    } catch (const Error& problem) {
      failure = problem.what();
    }
    finish(work, found, failure);
  }

  void finish(Work& work, const Evidence& found, std::string failure) {
    if (work.decided) return;
    work.outcome.claim = work.claim;
    if (failure.empty()) try {
        Result& result = work.outcome.result = result_of(*work.claim, found);
        result.mode = options_.budget.mode;
        result.seeds = options_.budget.seeds;
        result.cells = Index(work.cells.size());
        result.seconds = work.seconds, result.runs = work.runs;
        result.machine = machine_, result.version = version();
        result.command = options_.command + " " + work.claim->id + " --" + std::string(name_of(options_.budget.mode));
        if (options_.budget.seeds != usual_seeds(options_.budget.mode))
          result.command += " --seeds " + std::to_string(options_.budget.seeds);
      } catch (const Error& problem) {
        failure = problem.what();
      }
    work.outcome.failure = std::move(failure);
    if (work.outcome.failure.empty()) write_result(options_.folder, work.outcome.result);
    work.decided = true;
    ++claims_done_;
  }

  void report(std::string_view last) {
    last_report_ = Stopwatch();
    if (!progress_ || stopped_) return;
    StudyProgress now{.claims = works_.size(), .claims_done = claims_done_, .cells_done = cells_done_, .cells_kept = cells_kept_};
    double share = 0;
    for (const Task& task : tasks_) {
      share += task.share;
      now.cells += task.analytic == nullptr ? 1 : 0;
    }
    now.share = tasks_.empty() ? 1 : share / double(tasks_.size());
    now.seconds = watch_.seconds();
    now.seconds_left = now.share > 0 ? now.seconds * (1 - now.share) / now.share : 0;
    now.last = last;
    if (!progress_(now)) stopped_ = true;
  }

  const Json machine_ = to_json(machine_of(Context(1)));
  const StudyOptions& options_;
  const OnProgress& progress_;
  KeptCells kept_;
  Isa isa_;
  Cells done_;
  std::deque<Work> works_;  // tasks point to them
  std::deque<Task> tasks_;
  std::size_t at_ = 0, busy_ = 0, claims_done_ = 0, cells_done_ = 0, cells_kept_ = 0;
  bool stopped_ = false;
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Stopwatch watch_, last_report_;
};

}  // namespace

std::vector<Outcome> run_study(std::span<const Claim* const> claims, const StudyOptions& options, const OnProgress& progress) {
  std::error_code problem;
  std::filesystem::create_directories(options.folder, problem);
  if (problem) throw Error("cannot write " + options.folder + ": " + problem.message());
  const std::string lock_path = (std::filesystem::path(options.folder) / ".lock").string();
  const std::optional<FileLock> lock = FileLock::take(lock_path, FileLock::Absent::make);
  if (!lock) throw Error(options.folder + ": another study writes it; wait for it, or choose another folder with --out");
  return Runner(claims, options, progress).run();
}

}  // namespace isomer::study

#include "python/binding/contexts.h"

#include <pthread.h>

#include <atomic>
#include <map>
#include <memory>

#include "isomer/base/error.h"

namespace isomer::python {

namespace {
std::atomic<unsigned>& forks() {
  static std::atomic<unsigned> count{0};
  static const int watched = pthread_atfork(nullptr, nullptr, [] { forks().fetch_add(1); });
  (void)watched;
  return count;
}

struct Worker {
  explicit Worker(int threads) : context(threads), tape(context, Record::no) {}
  Context context;
  Tape<float> tape;
};

struct Kept {
  unsigned fork = forks().load();
  std::map<int, std::unique_ptr<Worker>> workers;
};

thread_local bool looking = false;

/// Runs the handlers of signals that have come; that of Ctrl-C raises an exception.
void look_at_signals() {
  const nanobind::gil_scoped_acquire locked;
  looking = true;
  const int raised = PyErr_CheckSignals();
  looking = false;
  if (raised != 0) throw nanobind::python_error();
}

void refuse_handlers() {
  if (looking)
    throw Error("isomer: expected no call by the handler of a signal while another call is at work in the same thread");
}

Worker& worker_of(int threads) {
  thread_local Kept kept;
  refuse_handlers();
  if (kept.fork != forks().load()) {
    // To end them would wait for threads that are not there.
    for (auto& [count, worker] : kept.workers) (void)worker.release();
    kept = {};
  }
  std::unique_ptr<Worker>& own = kept.workers[threads];
  if (!own) own = std::make_unique<Worker>(threads);
  return *own;
}
}  // namespace

Running::Running(bool brief) : watch_((refuse_handlers(), brief ? nullptr : look_at_signals)) {}

unsigned fork_count() { return forks().load(); }

Context& context_of(int threads) { return worker_of(threads).context; }

Tape<float>& tape_of(int threads) {
  Tape<float>& tape = worker_of(threads).tape;
  tape.clear();
  return tape;
}

}  // namespace isomer::python

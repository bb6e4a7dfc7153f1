#include "isomer/base/context.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "isomer/base/error.h"
#include "isomer/base/watch.h"

namespace isomer {

namespace {
// Waking a sleeping thread costs tens of microseconds; kernels often follow each other at once, so look for a while first.
constexpr int kSpins = 2000;

template <class Ready>
bool spin(Ready ready) {
  for (int i = 0; i < kSpins; ++i) {
    if (ready()) return true;
    __builtin_ia32_pause();
  }
  return ready();
}
}  // namespace

std::byte* Workspace::take_bytes(std::size_t bytes) {
  const std::size_t size = std::size_t(round_up(Index(bytes), Index(internal::kAlignment)));
  while (block_ < blocks_.size() && used_ + size > std::size_t(blocks_[block_].size())) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) blocks_.emplace_back(Index(std::max<std::size_t>(size, std::size_t{1} << 20)));
  std::byte* p = blocks_[block_].data() + used_;
  used_ += size;
  internal::poison(p, size);
  return p;
}

Index Workspace::bytes() const {
  Index total = 0;
  for (const auto& b : blocks_) total += b.size();
  return total;
}

void Workspace::give_back(std::size_t block, std::size_t used) {
  block_ = block;
  used_ = used;
  if (block_ != 0 || used_ != 0 || blocks_.size() < 2) return;
  // Empty again: next time one block of the whole size will do.
  const Index total = bytes();
  blocks_.clear();
  blocks_.emplace_back(total);
}

class Context::Pool {
 public:
  /// A thread for each workspace but the first, which is the caller's.
  explicit Pool(std::vector<Workspace>& workspaces) : workspaces_(workspaces) {
    for (std::size_t id = 1; id < workspaces_.size(); ++id) threads_.emplace_back([this, id] { worker(workspaces_[id]); });
  }
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      round_.fetch_add(1, std::memory_order_release);
    }
    start_.notify_all();
    for (auto& thread : threads_) thread.join();
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void run(Index count, Task task, Wake wake);

 private:
  void work(Workspace& workspace);
  /// Calls f; what it throws ends the round.
  template <class F>
  void attempt(F f);
  /// Until the other threads are done.
  void wait();
  void worker(Workspace& workspace);

  std::vector<Workspace>& workspaces_;

  // A round of work: `round_` counts up when one starts. Threads that come while it is open join it and are counted in `busy_`;
  // nobody waits for those that do not.
  std::mutex mutex_;
  std::condition_variable start_, done_;
  std::atomic<unsigned> round_{0};
  std::atomic<Index> next_{0};
  std::atomic<int> busy_{0};
  std::atomic<bool> ended_{false};  // the round, by what one of its tasks threw
  Index count_ = 0;
  Task task_;
  unsigned brief_ = 0;
  bool open_ = false, stop_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;  // last: they use all of the above
};

Context::Context(int threads, Isa isa) : threads_(threads), isa_(isa) {
  require(threads >= 0, "Context", "expected threads >= 0, got ", threads);
  if (threads_ == 0) threads_ = std::max(1, int(std::thread::hardware_concurrency()));
  workspaces_.resize(std::size_t(threads_));
  if (threads_ > 1) pool_ = new Pool(workspaces_);
}

Context::~Context() { delete pool_; }

void Context::run(Index count, Task task, Wake wake) {
  if (pool_ != nullptr && count > 1) return pool_->run(count, task, wake);
  for (Index i = 0; i < count; ++i) {
    may_stop();
    task.call(task.self, i, workspaces_[0]);
  }
}

void Context::Pool::run(Index count, Task task, Wake wake) {
  {
    const std::lock_guard lock(mutex_);
    task_ = task;
    count_ = count;
    failure_ = nullptr;
    ended_.store(false, std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
    open_ = true;
    round_.fetch_add(1, std::memory_order_release);
  }
  // Waking costs as much as brief work. In a row of brief calls one now and then does it: if they follow each other closely, the
  // threads stay awake from then on; if not, it is lost among the time between.
  constexpr unsigned kRow = 8;
  if (wake == Wake::all || ++brief_ % kRow == 0) start_.notify_all();
  work(workspaces_[0]);
  {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  if (!spin([this] { return busy_.load(std::memory_order_acquire) == 0; })) wait();
  if (failure_) std::rethrow_exception(failure_);
}

void Context::Pool::wait() {
  const auto idle = [this] { return busy_.load(std::memory_order_acquire) == 0; };
  std::unique_lock lock(mutex_);
  while (watched() && !done_.wait_for(lock, Watch::kPause, idle)) {
    lock.unlock();
    attempt([] { may_stop(); });
    lock.lock();
  }
  done_.wait(lock, idle);
}

template <class F>
void Context::Pool::attempt(F f) {
  try {
    f();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    ended_.store(true, std::memory_order_relaxed);
    next_.store(count_, std::memory_order_relaxed);
  }
}

void Context::Pool::work(Workspace& workspace) {
  for (;;) {
    const Index i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= count_) return;
    attempt([&] {
      may_stop();  // the caller has the watch, the others follow
      task_.call(task_.self, i, workspace);
    });
  }
}

void Context::Pool::worker(Workspace& workspace) {
  const Follow follow(ended_);
  unsigned seen = 0;
  for (;;) {
    if (!spin([&] { return round_.load(std::memory_order_acquire) != seen; })) {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return round_.load(std::memory_order_acquire) != seen; });
    }
    {
      const std::lock_guard lock(mutex_);
      seen = round_.load(std::memory_order_relaxed);
      if (stop_) return;
      if (!open_) continue;
      busy_.fetch_add(1, std::memory_order_relaxed);
    }
    work(workspace);
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      const std::lock_guard lock(mutex_);
      done_.notify_one();
    }
  }
}

}  // namespace isomer

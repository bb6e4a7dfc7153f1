#pragma once
// Where work runs: a pool of threads, an instruction set, and scratch memory that is kept between calls.
// Passed to every entry point, never global. One Context serves one calling thread at a time.
//
//   Context context(2);                                                               // two threads
//   context.parallel(n, [&](Index task, Workspace& scratch) { work(task, scratch); });  // tasks 0 … n-1, in any order
//
// Tasks are cut by the shape of the problem and never by the number of threads, so results do not depend on it.
#include <cstddef>
#include <vector>

#include "isomer/base/buffer.h"
#include "isomer/base/cpu.h"
#include "isomer/base/index.h"

namespace isomer {

/// Stack-like scratch memory: take() what a call needs, and a Scope gives it back at the end of a block.
class Workspace {
 public:
  /// Uninitialised, 64-byte aligned, valid until the enclosing Scope ends.
  template <class T>
  [[nodiscard]] T* take(Index count) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a pointer
    return reinterpret_cast<T*>(take_bytes(std::size_t(count) * sizeof(T)));
  }

  /// All that it holds, taken or not.
  [[nodiscard]] Index bytes() const;

  class Scope {
   public:
    explicit Scope(Workspace& w) : workspace_(w), block_(w.block_), used_(w.used_) {}
    ~Scope() { workspace_.give_back(block_, used_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Workspace& workspace_;
    std::size_t block_, used_;
  };

 private:
  std::byte* take_bytes(std::size_t bytes);
  void give_back(std::size_t block, std::size_t used);

  std::vector<Buffer<std::byte>> blocks_;
  std::size_t block_ = 0;  // the block being filled
  std::size_t used_ = 0;   // bytes used of it
};

class Context {
 public:
  /// threads = 0: one for each core.
  explicit Context(int threads = 0, Isa isa = chosen_isa());
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] int threads() const { return threads_; }
  [[nodiscard]] Isa isa() const { return isa_; }
  /// The calling thread's scratch.
  [[nodiscard]] Workspace& workspace() { return workspaces_[0]; }

  /// Calls task(i, scratch) once for every i in [0, count) and returns when all are done. The first exception is rethrown.
  template <class F>
  void parallel(Index count, F&& task) {
    run(count, task_of(task), Wake::all);
  }
  /// The same for a few microseconds of work: threads that still look for work help, those that sleep are mostly left asleep.
  template <class F>
  void parallel_briefly(Index count, F&& task) {
    run(count, task_of(task), Wake::none);
  }

 private:
  struct Task {
    void* self = nullptr;
    void (*call)(void*, Index, Workspace&) = nullptr;
  };
  template <class F>
  [[nodiscard]] static Task task_of(F& task) {
    return {&task, [](void* f, Index i, Workspace& w) { (*static_cast<F*>(f))(i, w); }};
  }
  enum class Wake { all, none };
  void run(Index count, Task task, Wake wake);

  int threads_;
  Isa isa_;
  std::vector<Workspace> workspaces_;  // one a thread
  class Pool;
  Pool* pool_ = nullptr;  // the other threads, owned; null for one thread
};

}  // namespace isomer

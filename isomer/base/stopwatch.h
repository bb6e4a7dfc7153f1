#pragma once
// Wall time that has passed, on a clock that nobody sets.
//
//   const Stopwatch watch;
//   work();
//   const double took = watch.seconds();
#include <chrono>

namespace isomer {

class Stopwatch {
 public:
  /// Since it was made.
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace isomer

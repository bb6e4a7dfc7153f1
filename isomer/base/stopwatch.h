#pragma once
// Wall time that has passed, on a clock that nobody sets.
//
//   const Stopwatch watch;
//   work();
//   const double took = watch.seconds();
#include <cstdint>

namespace isomer {

class Stopwatch {
 public:
  Stopwatch();
  /// Since it was made.
  [[nodiscard]] double seconds() const;

 private:
  std::int64_t start_;  // nanoseconds of the clock
};

}  // namespace isomer

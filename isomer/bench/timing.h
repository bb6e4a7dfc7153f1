#pragma once
// How long a piece of work takes.
#include <vector>

#include "isomer/laws/law.h"

namespace isomer {

/// The seconds of one call.
[[nodiscard]] double seconds_of(const BenchWork& work, Context& context);

struct Timing {
  double median = 0;  // seconds
  double spread = 0;  // median absolute deviation, seconds
  int samples = 0;
};

/// Warms up, then calls the work for about `budget` seconds: at least 3 times, and 30 where they are short.
[[nodiscard]] Timing measure(const BenchWork& work, Context& context, double budget);

/// What a bench gives back.
template <class Row>
struct BenchRows {
  std::vector<Row> rows;
  std::string refused;  // which subjects are not timed because their check fails, and why; empty if all were
};

}  // namespace isomer

#include "isomer/base/stopwatch.h"

#include <chrono>

namespace isomer {

namespace {
std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
}  // namespace

Stopwatch::Stopwatch() : start_(now()) {}

double Stopwatch::seconds() const { return double(now() - start_) * 1e-9; }

}  // namespace isomer

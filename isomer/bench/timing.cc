#include "isomer/bench/timing.h"

#include <algorithm>
#include <cmath>

#include "isomer/base/stopwatch.h"

namespace isomer {

namespace {
double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}
}  // namespace

double seconds_of(const BenchWork& work, Context& context) {
  const Stopwatch watch;
  work.run(context);
  return watch.seconds();
}

Timing measure(const BenchWork& work, Context& context, double budget) {
  constexpr std::size_t kFewest = 3, kMost = 2000;
  // The first call allocates, later ones fill caches and raise the clock; a tenth of the budget is spent on that.
  for (double warm = seconds_of(work, context); warm < budget / 10;) warm += seconds_of(work, context);
  std::vector<double> samples;
  for (double spent = 0; samples.size() < kFewest || (spent < budget && samples.size() < kMost);) {
    samples.push_back(seconds_of(work, context));
    spent += samples.back();
  }
  const double middle = median(samples);
  std::vector<double> deviations;
  deviations.reserve(samples.size());
  for (double sample : samples) deviations.push_back(std::abs(sample - middle));
  return {middle, median(deviations), int(samples.size())};
}

}  // namespace isomer

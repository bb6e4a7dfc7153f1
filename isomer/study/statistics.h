#pragma once
// What several seeds say together: means with bootstrap intervals, and slopes of log-log fits.
//
//   const Interval accuracy = bootstrap(std::vector<double>{0.97, 0.99, 0.98});   // mean 0.98, low 0.97, high 0.99
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "isomer/base/format.h"
#include "isomer/base/index.h"

namespace isomer::study {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A mean and where it may lie.
struct Interval {
  double mean = 0, low = 0, high = 0;
  Index n = 0;
};
/// "0.98 [0.97, 0.99]", or the mean alone where the interval is a point.
[[nodiscard]] std::string text_of(const Interval& x);
using isomer::text_of;

/// The mean over seeds with a percentile bootstrap interval at 95 %, which few seeds cover less than that (10,000 resamples drawn
/// from a fixed seed, so that it is the same everywhere). One value says nothing about the others: its interval is the whole
/// line. Up to three values the interval is their range. A value that is not finite makes the interval reach to it.
[[nodiscard]] Interval bootstrap(std::span<const double> values);

/// A value that no seed enters, known up to a bound of its error.
[[nodiscard]] Interval bounded(double value, double error);

/// The interval, and all that lies between it and `reach`.
[[nodiscard]] Interval widened(Interval x, std::optional<double> reach);

/// The slope of the least-squares line through (log x, log y); NaN if there are fewer than two points or one is not positive.
[[nodiscard]] double log_slope(std::span<const double> x, std::span<const double> y);

/// Of a few numbers; NaN for none.
[[nodiscard]] double mean(std::span<const double> values);

}  // namespace isomer::study

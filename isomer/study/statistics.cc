#include "isomer/study/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "isomer/base/rng.h"

namespace isomer::study {

namespace {
constexpr int kResamples = 10000;
}  // namespace

std::string text_of(const Interval& x) {
  if (x.low == x.high) return text_of(x.mean);
  return text_of(x.mean) + " [" + text_of(x.low) + ", " + text_of(x.high) + "]";
}

double mean(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

Interval bootstrap(std::span<const double> values) {
  const std::size_t n = values.size();
  if (n == 0) return {.mean = mean(values), .low = -kInfinity, .high = kInfinity, .n = 0};
  if (n == 1) return {.mean = values[0], .low = -kInfinity, .high = kInfinity, .n = 1};
  const auto [least, most] = std::ranges::minmax(values);
  if (n <= 3 || !std::ranges::all_of(values, [](double x) { return std::isfinite(x); }))
    return {.mean = mean(values), .low = least, .high = most, .n = Index(n)};
  Rng rng(1);
  std::vector<double> means(kResamples);
  for (double& resampled : means) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += values[rng.below(n)];
    resampled = sum / double(n);
  }
  std::ranges::sort(means);
  return {.mean = mean(values), .low = means[kResamples / 40], .high = means[kResamples - 1 - kResamples / 40], .n = Index(n)};
}

Interval bounded(double value, double error) { return {.mean = value, .low = value - error, .high = value + error, .n = 1}; }

Interval widened(Interval x, std::optional<double> reach) {
  if (reach) x.low = std::min(x.low, *reach), x.high = std::max(x.high, *reach);
  return x;
}

double log_slope(std::span<const double> x, std::span<const double> y) {
  const double n = double(x.size());
  if (x.size() < 2 || x.size() != y.size()) return std::numeric_limits<double>::quiet_NaN();
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] > 0) || !(y[i] > 0)) return std::numeric_limits<double>::quiet_NaN();
    const double lx = std::log(x[i]), ly = std::log(y[i]);
    sx += lx, sy += ly, sxx += lx * lx, sxy += lx * ly;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

}  // namespace isomer::study

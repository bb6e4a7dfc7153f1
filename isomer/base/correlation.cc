#include "isomer/base/correlation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace isomer {

namespace {
/// Positions in the order of rising values; equal ones share the mean of theirs.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> all(values.size());
  for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    for (std::size_t i = first; i < last; ++i) all[order[i]] = double(first + last - 1) / 2;
  }
  return all;
}
}  // namespace

double pearson(std::span<const double> a, std::span<const double> b) {
  const auto mean = [](std::span<const double> x) { return std::accumulate(x.begin(), x.end(), 0.0) / double(x.size()); };
  const double ma = mean(a), mb = mean(b);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    ab += (a[i] - ma) * (b[i] - mb), aa += (a[i] - ma) * (a[i] - ma), bb += (b[i] - mb) * (b[i] - mb);
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

double spearman(std::span<const double> a, std::span<const double> b) { return pearson(ranks(a), ranks(b)); }

}  // namespace isomer

#pragma once
// For the tests of kernels only: arrays with guards in several layouts, central differences, comparison in units of epsilon.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "isomer/base/rng.h"
#include "isomer/base/view.h"

namespace isomer::testing {

/// Row-major; with gaps between rows; column-major with gaps between elements.
enum class Layout { dense, gaps, strided };
inline constexpr Layout kLayouts[] = {Layout::dense, Layout::gaps, Layout::strided};

/// An array inside NaN: reading outside spoils results, writing outside is found by intact().
template <class T, int R>
struct Array {
  std::vector<T> storage;
  View<T, R> view;

  explicit Array(const std::array<Index, R>& shape, Layout layout = Layout::dense) {
    view.shape = shape;
    Index stride = layout == Layout::strided ? 2 : 1;
    for (int i = 0; i < R; ++i) {
      const int axis = layout == Layout::strided ? i : R - 1 - i;
      view.stride[axis] = stride;
      stride = stride * shape[axis] + (layout == Layout::dense ? 0 : 3);
    }
    storage.assign(std::size_t(extent() + 2 * kGuard), std::numeric_limits<T>::quiet_NaN());
    view.data = storage.data() + kGuard;
  }
  Array(const std::array<Index, R>& shape, Layout layout, Rng& rng) : Array(shape, layout) {
    for_each([&](T& x) { x = T(rng.normal()); });
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  template <class F>
  void for_each(F f) const {
    std::array<Index, R> i{};
    for (Index n = 0; n < view.size(); ++n) {
      T* p = view.data;
      for (int axis = 0; axis < R; ++axis) p += i[axis] * view.stride[axis];
      f(*p);
      for (int axis = R - 1; axis >= 0 && ++i[axis] == view.shape[axis]; --axis) i[axis] = 0;
    }
  }
  /// In row-major order.
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> list;
    for_each([&](T x) { list.push_back(double(x)); });
    return list;
  }
  void set(const std::vector<double>& list) {
    std::size_t n = 0;
    for_each([&](T& x) { x = T(list[n++]); });
  }
  /// Only the elements are numbers.
  [[nodiscard]] bool intact() const {
    const auto numbers = std::count_if(storage.begin(), storage.end(), [](T x) { return !std::isnan(x); });
    return numbers == view.size();
  }

 private:
  static constexpr Index kGuard = 40;

  [[nodiscard]] Index extent() const {
    Index last = 1;
    for (int axis = 0; axis < R; ++axis) last += std::max<Index>(view.shape[axis] - 1, 0) * view.stride[axis];
    return last;
  }
};

/// |got − want| ≤ multiple · epsilon · max |want|, element by element; NaN never passes.
template <class T>
void expect_close(const std::vector<double>& got, const std::vector<double>& want, double multiple, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 1e-30;
  for (double w : want) largest = std::max(largest, std::abs(w));
  const double limit = multiple * double(std::numeric_limits<T>::epsilon()) * largest;
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_LE(std::abs(got[i] - want[i]), limit) << what << " at " << i;
}

/// d f / d x by central differences, x put back afterwards.
template <class F>
[[nodiscard]] std::vector<double> differences(std::vector<double>& x, F f) {
  constexpr double h = 1e-5;
  std::vector<double> gradient;
  for (double& element : x) {
    const double kept = element;
    element = kept + h;
    const double above = f();
    element = kept - h;
    const double below = f();
    element = kept;
    gradient.push_back((above - below) / (2 * h));
  }
  return gradient;
}

/// 1e-6 of the largest element: what differences in double can show.
inline constexpr double kDifferenceMultiple = 1e-6 / std::numeric_limits<double>::epsilon();

[[nodiscard]] inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace isomer::testing

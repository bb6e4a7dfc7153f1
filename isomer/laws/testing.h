#pragma once
// What the tests of the laws share: arrays of any layout, results by name, and how far they are apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/laws/law.h"

namespace isomer::laws_test {

enum class Layout { dense, strided };

using Results = std::map<std::string, std::vector<double>>;

/// f(element) for every element of the view, the last axis fastest.
template <class T, int R, class F>
void each(const View<T, R>& view, F f) {
  for (Index i = 0; view.present() && i < view.size(); ++i) {
    T* p = view.data;
    Index rest = i;
    for (int axis = R - 1; axis >= 0; --axis) {
      p += rest % view.shape[axis] * view.stride[axis];
      rest /= view.shape[axis];
    }
    f(*p);
  }
}

/// A view on `memory`, dense or with every axis strided and the start misaligned; what lies between is NaN.
template <class T, int R>
View<T, R> make_view(const std::array<Index, R>& shape, Layout layout, std::vector<T>& memory) {
  const bool dense = layout == Layout::dense;
  View<T, R> view{nullptr, shape, {}};
  Index stride = dense ? 1 : 2;
  for (int axis = R - 1; axis >= 0; --axis) {
    view.stride[axis] = stride;
    stride = stride * shape[axis] + (dense ? 0 : 1);
  }
  memory.assign(std::size_t(stride) + 3, std::numeric_limits<T>::quiet_NaN());
  view.data = memory.data() + (dense ? 0 : 1);
  return view;
}

/// An array of R axes with its memory; absent until it is made.
template <class T, int R>
struct Array {
  std::vector<T> memory;
  View<T, R> view;

  void make(const std::array<Index, R>& shape, Layout layout) { view = make_view<T, R>(shape, layout, memory); }
  template <class F>
  void each(F f) const {
    laws_test::each(view, f);
  }
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> all;
    each([&](T x) { all.push_back(double(x)); });
    return all;
  }
};

/// The largest difference over the largest value wanted; NaN and missing numbers are infinite.
inline double error_of(const std::vector<double>& got, const std::vector<double>& want) {
  if (got.size() != want.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (got[i] == want[i]) continue;
    const double d = std::abs(got[i] - want[i]);
    difference = d <= difference ? difference : std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
  }
  for (double x : want) size = std::max(size, std::abs(x));
  return difference == 0 ? 0 : difference / std::max(size, 1e-300);
}

/// `grad` are the central differences of loss() by the elements of x, which is an input of it; where one is infinite, 0.
template <int R, class Loss>
void expect_differences(const Array<double, R>& x, const std::vector<double>& grad, const Loss& loss, const std::string& label) {
  std::size_t i = 0;
  double size = 1e-6;
  for (double g : grad) size = std::max(size, std::abs(g));
  x.each([&](double& e) {
    const double got = grad.at(i++), value = e, h = 1e-5;
    if (std::isinf(value)) {
      EXPECT_EQ(got, 0) << label;
      return;
    }
    e = value + h;
    const double up = loss();
    e = value - h;
    const double down = loss();
    e = value;
    EXPECT_NEAR(got, (up - down) / (2 * h), 1e-6 * size) << label << " at " << i - 1;
  });
}

/// No output before token t changes a bit when all inputs from t on do. inputs(p, f) calls f with every input that has tokens.
template <class Problem, class Draw, class Inputs>
void expect_past_unchanged(const Draw& base, Index chunk, float shift, const Inputs& inputs, const std::string& label) {
  for (Form form : {Form::step, Form::chunk, Form::parallel})
    for (Index t : {0, 7, 40}) {
      Draw setup = base;
      setup.B = 1, setup.T = 50, setup.chunk = chunk;
      Problem p(setup);
      Context context(2);
      const std::vector<double> before = p.run(form, context, false).at("o");
      inputs(p, [&](auto& x) {
        if (!x.view.present()) return;
        const Index row = x.view.stride[1];
        for (Index i = t * row; i < setup.T * row; ++i) x.view.data[i] = x.view.data[i] * 0.5f + shift;
      });
      const std::vector<double> after = p.run(form, context, false).at("o");
      const auto row = std::size_t(t * setup.H() * setup.V);
      EXPECT_TRUE(std::equal(before.begin(), before.begin() + row, after.begin())) << label << ", t = " << t;
    }
}

/// One, two and seven threads give the same bits: few heads and many, few whose columns are cut into slices (V = 50, packed),
/// each with a tape and initial states, and without.
template <class Problem, class Draw, class Label>
void expect_same_for_threads(const Draw& base, Index chunk, const Label& label) {
  Context one(1), two(2), seven(7);
  for (auto [heads, V] : {std::pair<Index, Index>{1, 3}, {1, 50}, {3, 50}, {9, 3}})
    for (bool tape : {true, false}) {
      Draw setup = base;
      setup.B = 1, setup.T = 200, setup.chunk = chunk, setup.Gq = setup.Gk = setup.Gv = heads, setup.V = V, setup.initial = tape;
      if (V == 50) setup.offsets = {0, 150, 150, 200};
      const Problem p(setup);
      const Results want = p.run(Form::chunk, one, true, tape);
      EXPECT_EQ(want, p.run(Form::chunk, two, true, tape)) << label;
      EXPECT_EQ(want, p.run(Form::chunk, seven, true, tape)) << label;
    }
}

}  // namespace isomer::laws_test

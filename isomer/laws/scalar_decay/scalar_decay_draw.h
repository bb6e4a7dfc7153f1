#pragma once
// What a random call of scalar_decay looks like, and the arrays it is made of. For the tests.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "isomer/base/rng.h"
#include "isomer/laws/scalar_decay/scalar_decay.h"

namespace isomer::scalar_decay_test {

using Normaliser = ScalarDecayOptions::Normaliser;
using Direction = ScalarDecayOptions::Direction;

enum class Gate { none, head, token, extreme };
enum class Layout { dense, strided };

struct Draw {
  Normaliser normaliser = Normaliser::none;
  Gate decay = Gate::none, input = Gate::none;
  Index B = 2, T = 19, Gq = 2, Gk = 2, Gv = 2, K = 5, V = 3;
  std::vector<std::int64_t> offsets = {};
  bool initial = false;
  Direction direction = Direction::causal;
  Index chunk = 0;
  double eps = 0;
  Layout layout = Layout::dense;
  double key_mean = 0;
  std::uint64_t seed = 1;

  [[nodiscard]] Index H() const { return std::max({Gq, Gk, Gv}); }
  [[nodiscard]] Index n() const { return offsets.empty() ? B : Index(offsets.size()) - 1; }
  [[nodiscard]] ScalarDecayOptions options() const {
    return {.normaliser = normaliser, .direction = direction, .eps = eps, .chunk = chunk};
  }
};

using Results = std::map<std::string, std::vector<double>>;

/// An array of R axes, dense or with every axis strided and the start misaligned; what lies between is NaN.
template <class T, int R>
struct Array {
  std::vector<T> memory;
  View<T, R> view;

  void make(const std::array<Index, R>& shape, Layout layout) {
    Index stride = layout == Layout::dense ? 1 : 2;
    view.shape = shape;
    for (int axis = R - 1; axis >= 0; --axis) {
      view.stride[axis] = stride;
      stride = stride * shape[axis] + (layout == Layout::dense ? 0 : 1);
    }
    memory.assign(std::size_t(stride) + 3, std::numeric_limits<T>::quiet_NaN());
    view.data = memory.data() + (layout == Layout::dense ? 0 : 1);
  }
  template <class F>
  void each(F f) const {
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
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> all;
    each([&](T x) { all.push_back(double(x)); });
    return all;
  }
};

template <class T>
struct StateArrays {
  Array<T, 4> state;
  Array<T, 3> norm, value_sum;
  Array<T, 2> max;
  Array<T, 1> count;

  void make(const Draw& s, bool scales) {
    const Index n = s.n(), H = s.H();
    state.make({n, H, s.K, s.V}, s.layout);
    if (s.normaliser != Normaliser::none) norm.make({n, H, s.K}, s.layout);
    if (s.normaliser == Normaliser::subtract) value_sum.make({n, H, s.V}, s.layout);
    if (s.normaliser == Normaliser::max && scales) max.make({n, H}, s.layout);
    if (s.normaliser == Normaliser::subtract && scales) count.make({n}, s.layout);
  }
  [[nodiscard]] ScalarDecayStates<T> views() const { return {state.view, norm.view, max.view, value_sum.view, count.view}; }
  [[nodiscard]] ScalarDecayStates<const T> const_views() const {
    return {state.view, norm.view, max.view, value_sum.view, count.view};
  }
  void into(Results& r, const std::string& prefix) const {
    if (state.view.present()) r[prefix + "state"] = state.values();
    if (norm.view.present()) r[prefix + "norm"] = norm.values();
    if (max.view.present()) r[prefix + "max"] = max.values();
    if (value_sum.view.present()) r[prefix + "value_sum"] = value_sum.values();
    if (count.view.present()) r[prefix + "count"] = count.values();
  }
};

}  // namespace isomer::scalar_decay_test

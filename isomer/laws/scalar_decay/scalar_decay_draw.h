#pragma once
// What a random call of scalar_decay looks like, and the arrays it is made of. For the tests.
#include "isomer/base/rng.h"
#include "isomer/laws/scalar_decay/scalar_decay.h"
#include "isomer/laws/testing.h"

namespace isomer::scalar_decay_test {

using laws_test::Array;
using laws_test::error_of;
using laws_test::Layout;
using laws_test::Results;
using Normaliser = ScalarDecayOptions::Normaliser;
using Direction = ScalarDecayOptions::Direction;

enum class Gate { none, head, token, extreme };

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

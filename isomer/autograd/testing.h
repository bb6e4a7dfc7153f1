#pragma once
// For tests of ops only: any op's gradients against central differences in double.
//
//   expect_gradients({random_values({1, 5, 1, 3}, 1), random_values({1, 1, 4, 3}, 2)},
//                    [](Tape<double>& tape, std::span<const Var<double>> in) { return ops::linear(tape, in[0], in[1]); });
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "isomer/autograd/tape.h"
#include "isomer/base/rng.h"
#include "tests/quick.h"

namespace isomer::testing {

struct Values {
  Shape4 shape;
  std::vector<double> data;
};

[[nodiscard]] inline Values random_values(const Shape4& shape, std::uint64_t seed, double mean = 0, double deviation = 1) {
  Rng rng(seed);
  Values values{shape, std::vector<double>(std::size_t(shape[0] * shape[1] * shape[2] * shape[3]))};
  for (double& x : values.data) x = mean + deviation * rng.normal();
  return values;
}

using Op = std::function<Var<double>(Tape<double>&, std::span<const Var<double>>)>;

/// Calls visit(element, weight) with weights fixed by position.
template <class Visit>
void with_weights(const View<double, 4>& y, Visit visit) {
  Rng rng(77);
  for (Index b = 0; b < y.shape[0]; ++b)
    for (Index t = 0; t < y.shape[1]; ++t)
      for (Index h = 0; h < y.shape[2]; ++h)
        for (Index d = 0; d < y.shape[3]; ++d) visit(y(b, t, h, d), rng.normal());
}

/// Relative to the largest gradient of the input; `limit` is for central differences in double.
inline void expect_gradients(std::vector<Values> inputs, const Op& op, double limit = 1e-6) {
  Context context(2);
  Tape<double> tape(context);
  const auto vars_of = [&](Tape<double>& on, bool wanted) {
    std::vector<Var<double>> vars;
    for (Values& in : inputs) vars.push_back(on.input(contiguous(in.data.data(), in.shape), wanted));
    return vars;
  };
  const auto value = [&] {
    Tape<double> plain(context, Record::no);
    const std::vector<Var<double>> vars = vars_of(plain, false);
    double sum = 0;
    with_weights(op(plain, vars).value, [&](double y, double weight) { sum += weight * y; });
    return sum;
  };
  const std::vector<Var<double>> vars = vars_of(tape, true);
  const Var<double> y = op(tape, vars);
  with_weights(tape.seed(y), [](double& dy, double weight) { dy = weight; });
  tape.backward();
  for (std::size_t n = 0; n < inputs.size(); ++n) {
    const View<const double, 4> got = tape.arrived(vars[n]);
    double worst = 0, largest = 1e-3;
    // Quick: every seventh, or some dozens of a large input.
    const std::size_t step = tests::quick() ? std::max<std::size_t>(7, inputs[n].data.size() / 60 | 1) : 1;
    for (std::size_t i = 0; i < inputs[n].data.size(); i += step) {
      double& x = inputs[n].data[i];
      const double h = 1e-5 * std::max(1.0, std::abs(x)), before = x;
      x = before + h;
      const double up = value();
      x = before - h;
      const double down = value();
      x = before;
      const double slope = (up - down) / (2 * h);
      // A NaN is no smaller than anything and must not pass as 0.
      const double error = std::abs(slope - got.data[i]);
      worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
      largest = std::max(largest, std::abs(slope));
    }
    EXPECT_LE(worst / largest, limit) << "input " << n;
  }
}

}  // namespace isomer::testing

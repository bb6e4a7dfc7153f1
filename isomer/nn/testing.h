#pragma once
// For tests of modules only: gradients of every trained parameter and of the input against central differences in double.
//
//   expect_parameter_gradients(parameters, random_values({2, 5, 1, 8}, 1),
//                              [&](Tape<double>& tape, Var<double> x) { return layer(tape, x); });
#include <span>

#include "isomer/autograd/testing.h"
#include "isomer/nn/parameters.h"

namespace isomer::testing {

using Layer = std::function<Var<double>(Tape<double>&, Var<double>)>;

/// The largest error of `got`, relative to the largest slope of value() along the numbers of x.
template <class Value>
[[nodiscard]] double gradient_error(std::span<double> x, std::span<const double> got, Value value) {
  double worst = 0, largest = 1e-3;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double before = x[i], h = 1e-5 * std::max(1.0, std::abs(before));
    x[i] = before + h;
    const double up = value();
    x[i] = before - h;
    const double down = value();
    x[i] = before;
    const double slope = (up - down) / (2 * h), error = std::abs(slope - got[i]);
    worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
    largest = std::max(largest, std::abs(slope));
  }
  return worst / largest;
}

inline void expect_parameter_gradients(Parameters<double>& parameters, Values x, const Layer& layer, double limit = 1e-6) {
  Context context(2);
  Tape<double> tape(context), plain(context, Record::no);
  const auto input = [&](Tape<double>& on, bool wanted) { return on.input(contiguous(x.data.data(), x.shape), wanted); };
  const auto value = [&] {
    double sum = 0;
    with_weights(layer(plain, input(plain, false)).value, [&](double y, double weight) { sum += weight * y; });
    plain.clear();
    return sum;
  };
  parameters.zero_gradients();
  const Var<double> in = input(tape, true), out = layer(tape, in);
  with_weights(tape.seed(out), [](double& dy, double weight) { dy = weight; });
  tape.backward();
  const View<const double, 4> dx = tape.arrived(in);
  EXPECT_LE(gradient_error(x.data, {dx.data, x.data.size()}, value), limit) << "input";
  for (const Parameter<double>& p : parameters.all()) {
    if (!p.trained()) continue;
    // None has arrived: the value must not depend on it.
    const std::vector<double> zero(p.gradient().empty() ? p.values().size() : 0);
    const std::span<const double> got = zero.empty() ? std::span<const double>(p.gradient()) : zero;
    EXPECT_LE(gradient_error(p.values(), got, value), limit) << p.name();
  }
}

}  // namespace isomer::testing

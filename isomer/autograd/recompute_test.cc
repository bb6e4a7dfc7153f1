#include "isomer/autograd/recompute.h"

#include <gtest/gtest.h>

#include "isomer/autograd/elementwise.h"
#include "isomer/autograd/laws.h"
#include "isomer/autograd/linear.h"
#include "isomer/autograd/testing.h"

namespace isomer {
namespace {
using namespace ops;
using testing::expect_gradients;
using testing::random_values;

/// A layer with a law, used as x + layer(x).
template <class T>
Var<T> layer(Tape<T>& tape, Var<T> x, Var<T> weight) {
  const Var<T> h = unary(tape, Unary::silu, linear(tape, x, weight));
  return add(tape, x, unary(tape, Unary::tanh, scalar_decay<T>(tape, {.q = h, .k = h, .v = x})));
}

TEST(Recompute, HasTheGradientsOfWhatItComputes) {
  expect_gradients({random_values({2, 5, 1, 3}, 1), random_values({1, 1, 3, 3}, 2)}, [](Tape<double>& tape,
                                                                                        std::span<const Var<double>> in) {
    // One inside the other, and x is used outside too.
    const Var<double> y = recompute<double>(tape, {in[0], in[1]}, [](Tape<double>& t, auto outer) {
      const Var<double> first = layer(t, outer[0], outer[1]);
      return recompute<double>(t, {first, outer[1]}, [](Tape<double>& u, auto inner) { return layer(u, inner[0], inner[1]); });
    });
    return multiply(tape, y, in[0]);
  });
}

TEST(Recompute, HasTheGradientsOfSeveralValues) {
  for (const bool both : {true, false})
    expect_gradients({random_values({2, 5, 1, 3}, 1), random_values({1, 1, 3, 3}, 2)},
                     [both](Tape<double>& tape, std::span<const Var<double>> in) {
                       // The second is a part of the way to the first; nothing may arrive at it.
                       std::array<Var<double>, 2> out;
                       recompute<double>(tape, in, out, [](Tape<double>& t, auto x, auto y) {
                         y[1] = linear(t, x[0], x[1]);
                         y[0] = layer(t, unary(t, Unary::silu, y[1]), x[1]);
                       });
                       return both ? multiply(tape, out[0], add(tape, out[1], out[1])) : out[0];
                     });
}

/// Bytes after some steps of 24 layers, and the gradient of x.
struct Outcome {
  Index bytes;
  std::vector<float> gradient;
};

Outcome run(bool again) {
  constexpr Index L = 512, D = 64;
  Context context(1);
  Tape<float> tape(context);
  testing::Values x = random_values({1, L, 1, D}, 1), w = random_values({1, 1, D, D}, 2, 0, 0.1);
  std::vector<float> values(x.data.begin(), x.data.end()), weights(w.data.begin(), w.data.end()), gradient;
  for (int step = 0; step < 2; ++step) {
    const Var<float> in = tape.input(contiguous(values.data(), {1, L, 1, D}), true);
    const Var<float> weight = tape.input(contiguous(weights.data(), {1, 1, D, D}), true);
    Var<float> y = in;
    for (int i = 0; i < 24; ++i)
      y = again ? recompute<float>(tape, {y, weight}, [](Tape<float>& t, auto v) { return layer(t, v[0], v[1]); })
                : layer(tape, y, weight);
    tape.backward(y);
    const View<const float, 4> dx = tape.arrived(in);
    gradient.assign(dx.data, dx.data + dx.size());
    tape.clear();
  }
  return {tape.bytes(), gradient};
}

TEST(Recompute, TakesLessMemoryForTheSameGradients) {
  const Outcome kept = run(false), again = run(true);
  EXPECT_EQ(kept.gradient, again.gradient);
  EXPECT_LT(3 * again.bytes, kept.bytes);
}

TEST(Recompute, LeavesTheTapeAsItWasWhenItFails) {
  Context context(1);
  Tape<double> tape(context);
  std::vector<double> x(4, 1.0);
  const Var<double> in = tape.input(contiguous(x.data(), {1, 1, 1, 4}), true);
  std::vector<double> w(6, 1.0);
  const Var<double> weight = tape.input(contiguous(w.data(), {1, 1, 2, 3}), true);
  EXPECT_ANY_THROW((void)recompute<double>(tape, {in, weight}, [](Tape<double>& t, auto v) { return linear(t, v[0], v[1]); }));
  EXPECT_TRUE(tape.recording());
  tape.backward(unary(tape, Unary::square, in));
  EXPECT_EQ(tape.arrived(in)(0, 0, 0, 3), 2.0);
}

}  // namespace
}  // namespace isomer

// Ops that are one kernel: norm, conv, rotary.
#include <gtest/gtest.h>

#include "isomer/autograd/conv.h"
#include "isomer/autograd/laws.h"
#include "isomer/autograd/linear.h"
#include "isomer/autograd/norm.h"
#include "isomer/autograd/psi.h"
#include "isomer/autograd/rotary.h"
#include "isomer/autograd/testing.h"
#include "isomer/autograd/views.h"
#include "isomer/base/error.h"

namespace isomer {
namespace {
using namespace ops;
using testing::expect_gradients;
using testing::random_values;
using D = double;
using Vars = std::span<const Var<D>>;

/// The middle piece of a projection: rows that are not dense.
Var<D> middle(Tape<D>& tape, Var<D> x, Var<D> weight, Index size) {
  std::array<Var<D>, 3> pieces;
  split<D>(tape, linear(tape, x, weight), std::array<Index, 3>{1, size, 2}, pieces);
  return pieces[1];
}

TEST(NormOp, HasTheGradientsOfItsEquation) {
  for (const Norm kind : {Norm::rms, Norm::layer, Norm::l2})
    for (const Index heads : {1, 3})
      expect_gradients({random_values({2, 3, 3, 5}, 1), random_values({1, 1, heads, 5}, 2), random_values({1, 1, heads, 5}, 3)},
                       [&](Tape<D>& tape, Vars in) { return norm(tape, in[0], {.kind = kind}, in[1], in[2]); });
  // Used twice, without parameters.
  expect_gradients({random_values({1, 3, 1, 2}, 1), random_values({1, 1, 7, 2}, 2)}, [](Tape<D>& tape, Vars in) {
    const Var<D> x = middle(tape, in[0], in[1], 4);
    return attention<D>(tape, {.q = norm(tape, x, {}), .k = x, .v = x});
  });
}

TEST(ConvOp, HasTheGradientsOfItsEquation) {
  expect_gradients({random_values({2, 5, 2, 3}, 1), random_values({1, 1, 6, 4}, 2), random_values({1, 1, 1, 6}, 3)},
                   [](Tape<D>& tape, Vars in) {
                     const Var<D> y = conv<D>(tape, {conv<D>(tape, {in[0], in[1], in[2]}), in[1], in[2], true});
                     EXPECT_EQ(y.shape(), in[0].shape());
                     return y;
                   });
  expect_gradients({random_values({1, 4, 1, 2}, 1), random_values({1, 1, 6, 2}, 2), random_values({1, 1, 3, 2}, 3)},
                   [](Tape<D>& tape, Vars in) {
                     return conv<D>(tape, {conv<D>(tape, {middle(tape, in[0], in[1], 3), in[2]}), in[2]});
                   });
}

TEST(ConvOp, CarriesItsStateAndKeepsTheInitialOneForGradients) {
  const testing::Values start = random_values({1, 2, 1, 3}, 5);
  expect_gradients({random_values({1, 4, 1, 3}, 1), random_values({1, 1, 3, 3}, 2)}, [&](Tape<D>& tape, Vars in) {
    Var<D> state = tape.make({1, 1, 2, 3}, {});
    std::ranges::copy(start.data, state.value.data);
    const Var<D> y = conv<D>(tape, {in[0], in[1]}, {.state = &state});
    for (Index c = 0; c < 3; ++c) EXPECT_EQ(state.value(0, 0, 1, c), in[0].value(0, 3, 0, c));
    return y;
  });
}

TEST(RotaryOp, HasTheGradientsOfItsEquation) {
  static constexpr std::array<std::int64_t, 2> kPositions{3, 3};
  static constexpr Sequences kThree{.positions = kPositions};
  expect_gradients({random_values({2, 5, 2, 4}, 1)},
                   [](Tape<D>& tape, Vars in) { return rotary(tape, in[0], {.base = 100}, kThree); });
  for (const Shape4& angles : {Shape4{2, 5, 2, 2}, Shape4{2, 5, 1, 2}, Shape4{1, 1, 2, 2}})
    expect_gradients({random_values({2, 5, 2, 4}, 1), random_values(angles, 2)},
                     [](Tape<D>& tape, Vars in) { return rotary(tape, in[0], in[1]); });
}

TEST(PsiOp, HasTheGradientsOfItsNetworks) {
  constexpr Index L = 3, J = 6;
  for (const Index networks : {Index{1}, L})
    for (const bool positive : {false, true})
      expect_gradients({random_values({2, 3, 2, 2}, 1), random_values({1, 1, networks, J}, 2),
                        random_values({1, 1, networks, J}, 3), random_values({1, 1, L, J}, 4), random_values({1, 1, 1, L}, 5)},
                       [&](Tape<D>& tape, Vars in) {
                         return psi<D>(tape, in[0], {in[1], in[2], in[3], in[4]}, {.positive = positive});
                       });
}

TEST(Heads, AreRefusedWhereTheyDoNotStandSideBySide) {
  Context context(1);
  Tape<D> tape(context);
  std::vector<D> x(12);
  const Var<D> var = tape.input(slice(contiguous(x.data(), {1, 2, 2, 3}), 3, 0, 2));
  EXPECT_THROW((void)heads(var, 1), Error);
}

}  // namespace
}  // namespace isomer

#include "isomer/autograd/fused.h"

#include <gtest/gtest.h>

#include "isomer/autograd/elementwise.h"
#include "isomer/autograd/testing.h"
#include "isomer/autograd/views.h"

namespace isomer {
namespace {
using namespace ops;
using testing::expect_gradients;
using testing::random_values;
using D = double;
using Vars = std::span<const Var<D>>;

// Of inputs x, a, b: 3 = tanh(x); 4 = a · b; 5 = 3 + 4; 6 = 3 · x; 7 = 5 − 6; 8 = 0.5 · 5 + 1; 9 = silu(b) · 8.
constexpr std::array<FusedStep, 7> kSteps{{{.a = 0, .f = Unary::tanh},
                                           {.a = 1, .b = 2, .combine = Binary::multiply},
                                           {.a = 3, .b = 4, .combine = Binary::add},
                                           {.a = 3, .b = 0, .combine = Binary::multiply},
                                           {.a = 5, .b = 6, .combine = Binary::subtract},
                                           {.a = 5, .f = Unary::affine, .options = {.a = 0.5, .b = 1}},
                                           {.a = 2, .b = 8, .f = Unary::silu}}};

std::array<Var<D>, 3> step_by_step(Tape<D>& tape, Var<D> x, Var<D> a, Var<D> b) {
  const Var<D> t = unary(tape, Unary::tanh, x), sum = add(tape, t, multiply(tape, a, b));
  return {sum, subtract(tape, sum, multiply(tape, t, x)),
          multiply(tape, unary(tape, Unary::silu, b), unary(tape, Unary::affine, sum, {.a = 0.5, .b = 1}))};
}
constexpr std::array<int, 3> kOutputs{5, 7, 9};

std::array<Var<D>, 3> at_once(Tape<D>& tape, Vars in) {
  std::array<Var<D>, 3> y;
  fused<D>(tape, {.inputs = 3, .steps = kSteps, .outputs = kOutputs}, in, y);
  return y;
}

TEST(FusedOps, GiveWhatTheirStepsGive) {
  Context context(1);
  Tape<D> tape(context, Record::no);
  testing::Values x = random_values({2, 70, 3, 65}, 1), a = random_values({2, 70, 3, 1}, 2), b = random_values({1, 1, 3, 65}, 3);
  const auto var = [&](testing::Values& v) { return tape.input(contiguous(v.data.data(), v.shape)); };
  const std::array<Var<D>, 3> in{var(x), var(a), var(b)};
  const auto got = at_once(tape, in), want = step_by_step(tape, in[0], in[1], in[2]);
  for (std::size_t o = 0; o < 3; ++o)
    for (Index i = 0; i < got[o].value.size(); ++i) ASSERT_EQ(got[o].value.data[i], want[o].value.data[i]) << o << " " << i;
}

TEST(FusedOps, HaveTheGradientsOfTheirEquations) {
  // Repeated over sequences, tokens, heads, the last axis, or several of them.
  for (const Shape4& a : {Shape4{2, 3, 2, 4}, Shape4{2, 3, 2, 1}, Shape4{2, 3, 1, 1}, Shape4{1, 3, 1, 4}, Shape4{1, 1, 1, 1}})
    for (const Shape4& b : {Shape4{1, 1, 2, 4}, Shape4{1, 1, 1, 4}, Shape4{1, 1, 2, 1}})
      expect_gradients({random_values({2, 3, 2, 4}, 1), random_values(a, 2), random_values(b, 3)}, [](Tape<D>& tape, Vars in) {
        const auto y = at_once(tape, in);
        return multiply(tape, y[0], add(tape, unary(tape, Unary::square, y[1]), y[2]));
      });
}

TEST(FusedOps, NeedNoGradientOfEveryOutput) {
  for (std::size_t o = 0; o < 3; ++o)
    expect_gradients({random_values({2, 3, 2, 4}, 1), random_values({2, 3, 2, 1}, 2), random_values({1, 1, 2, 4}, 3)},
                     [&](Tape<D>& tape, Vars in) { return at_once(tape, in)[o]; });
  // Step 6 alone does not see a and b.
  expect_gradients({random_values({2, 3, 2, 4}, 1), random_values({2, 3, 2, 1}, 2), random_values({1, 1, 2, 4}, 3)},
                   [](Tape<D>& tape, Vars in) {
                     static constexpr std::array<int, 2> kTwo{6, 8};
                     std::array<Var<D>, 2> y;
                     fused<D>(tape, {.inputs = 3, .steps = kSteps, .outputs = kTwo}, in, y);
                     return y[0];
                   });
}

TEST(FusedOps, InputsMayBePartsOfOneValue) {
  for (const Index second : {4, 2, 0})
    expect_gradients({random_values({2, 3, 1, 8}, 1), random_values({1, 1, 1, 4}, 2)}, [&](Tape<D>& tape, Vars in) {
      const Var<D> whole = unary(tape, Unary::square, in[0]);
      const std::array<Var<D>, 3> parts{slice(whole, 0, 4), slice(whole, second, 4), in[1]};
      const auto y = at_once(tape, parts);
      return multiply(tape, y[0], y[1]);
    });
}

TEST(FusedOps, TakeNoTokensAndMany) {
  // Of more cells than one patch, with rows longer than one.
  expect_gradients({random_values({1, 2, 1, 5000}, 1), random_values({1, 2, 1, 1}, 2), random_values({1, 1, 1, 5000}, 3)},
                   [](Tape<D>& tape, Vars in) { return at_once(tape, in)[1]; });
  Context context(1);
  Tape<D> tape(context);
  testing::Values x = random_values({2, 0, 1, 4}, 1), a = random_values({1, 1, 1, 4}, 2);
  const Var<D> parameter = tape.input(contiguous(a.data.data(), a.shape), true);
  const std::array<Var<D>, 3> in{tape.input(contiguous(x.data.data(), x.shape), true), parameter, parameter};
  const auto y = at_once(tape, std::span(in));
  EXPECT_EQ(y[0].shape(), x.shape);
}

TEST(FusedOps, GiveTheSameBitsForAnyNumberOfThreads) {
  const auto gradients = [](int threads) {
    Context context(threads);
    Tape<float> tape(context);
    std::vector<float> x(2 * 300 * 64), a(2 * 300), b(64);
    Rng rng(5);
    for (auto* list : {&x, &a, &b})
      for (float& number : *list) number = float(rng.normal());
    const std::array<Var<float>, 3> in{tape.input(contiguous(x.data(), {2, 300, 1, 64}), true),
                                       tape.input(contiguous(a.data(), {2, 300, 1, 1}), true),
                                       tape.input(contiguous(b.data(), {1, 1, 1, 64}), true)};
    std::array<Var<float>, 3> y;
    fused<float>(tape, {.inputs = 3, .steps = kSteps, .outputs = kOutputs}, in, y);
    tape.backward(y[1]);
    std::vector<float> all;
    for (const Var<float>& var : in) {
      const auto gradient = tape.arrived(var);
      all.insert(all.end(), gradient.data, gradient.data + gradient.size());
    }
    return all;
  };
  const std::vector<float> one = gradients(1);
  EXPECT_EQ(one, gradients(2));
  EXPECT_EQ(one, gradients(7));
}

}  // namespace
}  // namespace isomer

#include "isomer/autograd/tape.h"

#include <gtest/gtest.h>

#include "isomer/autograd/linear.h"
#include "isomer/autograd/testing.h"
#include "isomer/autograd/views.h"

namespace isomer {
namespace {
using namespace ops;
using testing::expect_gradients;
using testing::random_values;

TEST(Linear, HasTheGradientsOfItsEquation) {
  expect_gradients({random_values({2, 5, 1, 3}, 1), random_values({1, 1, 4, 3}, 2), random_values({1, 1, 1, 4}, 3)},
                   [](Tape<double>& tape, std::span<const Var<double>> in) { return linear(tape, in[0], in[1], in[2]); });
}

TEST(Linear, OfEveryHeadHasTheGradientsOfItsEquation) {
  expect_gradients({random_values({2, 5, 3, 2}, 1), random_values({1, 3, 4, 2}, 2), random_values({1, 1, 3, 4}, 3)},
                   [](Tape<double>& tape, std::span<const Var<double>> in) { return head_linear(tape, in[0], in[1], in[2]); });
}

TEST(Linear, MayBeSharedByHeads) {
  expect_gradients({random_values({2, 5, 3, 2}, 1), random_values({1, 1, 4, 2}, 2), random_values({1, 1, 1, 4}, 3)},
                   [](Tape<double>& tape, std::span<const Var<double>> in) { return head_linear(tape, in[0], in[1], in[2]); });
}

TEST(Linear, TakesRowsThatAreNotEvenlySpaced) {
  // Some tokens of every sequence, and some channels of every head.
  for (const Index weights : {1, 3})
    expect_gradients({random_values({2, 5, 3, 4}, 1), random_values({1, weights, 4, 2}, 2)},
                     [](Tape<double>& tape, std::span<const Var<double>> in) {
                       const Var<double> some = Tape<double>::part(in[0], slice(in[0].value, 1, 1, 3));
                       return head_linear(tape, slice(some, 1, 2), in[1]);
                     });
}

TEST(Linear, OfOneNumberAHeadHasTheGradientsOfItsEquation) {
  for (const Index heads : {3, 1})
    expect_gradients({random_values({2, 5, 3, 4}, 1), random_values({1, heads, 1, 4}, 2)},
                     [](Tape<double>& tape, std::span<const Var<double>> in) { return head_linear(tape, in[0], in[1]); });
}

TEST(Tape, SumsTheGradientsOfAValueThatIsUsedTwice) {
  expect_gradients({random_values({1, 4, 1, 3}, 1), random_values({1, 1, 3, 3}, 2)},
                   [](Tape<double>& tape, std::span<const Var<double>> in) {
                     return linear(tape, linear(tape, linear(tape, in[0], in[1]), in[1]), in[1]);
                   });
}

TEST(Views, PiecesCarryTheirGradientsToTheWhole) {
  // The middle piece is not used: its gradient is zero.
  expect_gradients({random_values({2, 3, 1, 2}, 1), random_values({1, 1, 7, 2}, 2), random_values({1, 2, 3, 1}, 3),
                    random_values({1, 1, 2, 6}, 4)},
                   [](Tape<double>& tape, std::span<const Var<double>> in) {
                     const Var<double> all = linear(tape, in[0], in[1]);
                     std::array<Var<double>, 3> pieces;
                     split<double>(tape, all, std::array<Index, 3>{2, 3, 2}, pieces);
                     const Var<double> a = head_linear(tape, heads(pieces[0], 2), in[2]);
                     return linear(tape, heads(a, 1), in[3]);
                   });
}

TEST(Tape, KeepsNoMemoryOfAStepForTheNext) {
  Context context(1);
  Tape<float> tape(context);
  std::vector<float> x(8, 1.0f), w(16, 0.5f);
  const float* first = nullptr;
  for (int step = 0; step < 3; ++step) {
    const Var<float> in = tape.input(contiguous(x.data(), {1, 2, 1, 4}));
    const Var<float> weight = tape.input(contiguous(w.data(), {1, 1, 4, 4}), true);
    const Var<float> y = linear(tape, in, weight);
    tape.backward(y);
    EXPECT_EQ(tape.arrived(weight)(0, 0, 0, 0), 2.0f);
    // The first step may find its memory in several blocks; from then on it is one.
    if (step == 1) first = y.value.data;
    EXPECT_EQ(y.value.data, step < 2 ? y.value.data : first);
    tape.clear();
  }
}

TEST(Tape, SumsTheSecondsOfItsKernelsWhenAsked) {
  Context context(1);
  Tape<float> tape(context);
  std::vector<float> x(64 * 64, 1.0f);
  Profile profile;
  const auto forward = [&] {
    return linear(tape, tape.input(contiguous(x.data(), {1, 64, 1, 64})), tape.input(contiguous(x.data(), {1, 1, 64, 64}), true));
  };
  (void)forward();
  EXPECT_EQ(profile.total(), 0.0);
  tape.profile(&profile);
  const Var<float> y = forward();
  const double ahead = profile.seconds(Profile::Kind::product);
  EXPECT_GT(ahead, 0.0);
  tape.backward(y);
  EXPECT_GT(profile.seconds(Profile::Kind::product), ahead);
  EXPECT_EQ(profile.seconds(Profile::Kind::law), 0.0);
  profile.clear();
  tape.profile(nullptr);
  (void)forward();
  EXPECT_EQ(profile.total(), 0.0);
}

TEST(Tape, WithoutRecordingComputesOnly) {
  Context context(1);
  Tape<float> tape(context, Record::no);
  std::vector<float> x(4, 1.0f), w(4, 0.5f);
  const Var<float> weight = tape.input(contiguous(w.data(), {1, 1, 1, 4}), true);
  const Var<float> y = linear(tape, tape.input(contiguous(x.data(), {1, 1, 1, 4})), weight);
  EXPECT_EQ(y.value(0, 0, 0, 0), 2.0f);
  EXPECT_FALSE(y.wanted());
}

}  // namespace
}  // namespace isomer

#include "isomer/autograd/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "isomer/autograd/linear.h"
#include "isomer/autograd/testing.h"
#include "isomer/autograd/tokens.h"
#include "isomer/autograd/views.h"
#include "isomer/base/error.h"
#include "tests/error_of.h"

namespace isomer {
namespace {
using namespace ops;
using testing::expect_gradients;
using testing::random_values;
using D = double;
using Vars = std::span<const Var<D>>;

testing::Values x(std::uint64_t seed = 1) { return random_values({2, 3, 2, 5}, seed); }

TEST(ElementwiseOps, UnaryHasTheGradientOfItsFunction) {
  for (const Unary f : {Unary::identity, Unary::exp, Unary::silu, Unary::log_sigmoid, Unary::square})
    expect_gradients({x()}, [&](Tape<D>& tape, Vars in) { return unary(tape, f, unary(tape, Unary::tanh, in[0])); });
  expect_gradients({x()}, [](Tape<D>& tape, Vars in) { return unary(tape, Unary::affine, in[0], {.a = 3, .b = 1}); });
}

TEST(ElementwiseOps, BinaryRepeatsAxesAndSumsTheirGradients) {
  for (const Binary f : {Binary::add, Binary::subtract, Binary::multiply})
    for (const Shape4& shape :
         {Shape4{2, 3, 2, 5}, Shape4{1, 1, 2, 5}, Shape4{2, 3, 1, 5}, Shape4{2, 3, 2, 1}, Shape4{1, 3, 1, 1}}) {
      expect_gradients({x(), random_values(shape, 2)}, [&](Tape<D>& tape, Vars in) { return binary(tape, f, in[0], in[1]); });
      expect_gradients({x(), random_values(shape, 2)}, [&](Tape<D>& tape, Vars in) { return binary(tape, f, in[1], in[0]); });
    }
  expect_gradients({x()}, [](Tape<D>& tape, Vars in) { return multiply(tape, in[0], add(tape, in[0], in[0])); });
}

TEST(ElementwiseOps, GatesHaveTheGradientsOfTheirProduct) {
  for (const Unary f : {Unary::sigmoid, Unary::silu, Unary::gelu, Unary::tanh}) {
    expect_gradients({x(1), x(2)}, [&](Tape<D>& tape, Vars in) { return gated(tape, f, in[0], in[1]); });
    expect_gradients({x(1)}, [&](Tape<D>& tape, Vars in) { return gated(tape, f, in[0], in[0]); });
  }
  expect_gradients({random_values({2, 3, 2, 1}, 1), x(2)},
                   [&](Tape<D>& tape, Vars in) { return gated(tape, Unary::sigmoid, in[0], in[1]); });
}

TEST(ElementwiseOps, RowsHaveTheGradientsOfTheirEquations) {
  expect_gradients({x()}, [](Tape<D>& tape, Vars in) { return softmax(tape, in[0]); });
  expect_gradients({x()}, [](Tape<D>& tape, Vars in) { return share_of_heads(tape, in[0], 1, 2); });
  expect_gradients({x()}, [](Tape<D>& tape, Vars in) {
    return multiply(tape, share_of_heads(tape, in[0], 0, 1), share_of_heads(tape, in[0], 0, 2));
  });
  expect_gradients({x()}, [](Tape<D>& tape, Vars in) { return square_sum(tape, in[0]); });
  expect_gradients({x()}, [](Tape<D>& tape, Vars in) { return taylor_features(tape, in[0]); });
}

TEST(ElementwiseOps, SharesOfHeadsAreTheirSoftmaxAndNeverAboveOne) {
  std::vector<float> numbers{0, 1000, -1, 2, 3, -1000};
  Context context(1);
  Tape<float> tape(context, Record::no);
  const Var<float> three = tape.input(contiguous(numbers.data(), {1, 1, 3, 2})), rest = share_of_heads(tape, three, 1, 3);
  EXPECT_FLOAT_EQ(rest.value(0, 0, 0, 0), float((std::exp(-1.0) + std::exp(3.0)) / (1 + std::exp(-1.0) + std::exp(3.0))));
  EXPECT_EQ(rest.value(0, 0, 0, 1), 0);
  // Of twenty equal ones each share is rounded.
  std::vector<float> equal(20);
  const Var<float> all = tape.input(contiguous(equal.data(), {1, 1, 20, 1}));
  EXPECT_EQ(share_of_heads(tape, all, 0, 20).value(0, 0, 0, 0), 1);
}

TEST(ElementwiseOps, GatherAddsUpWhatComesBack) {
  const std::array<Index, 5> places{2, 0, 2, 2, 1};
  expect_gradients({random_values({1, 1, 2, 4}, 1)},
                   [&](Tape<D>& tape, Vars in) { return ops::gather<double>(tape, in[0], places); });
  Context context(1);
  Tape<double> tape(context, Record::no);
  std::vector<double> x{1, 2, 3};
  const Var<double> in = tape.input(contiguous(x.data(), {1, 1, 1, 3})), y = ops::gather<double>(tape, in, places);
  EXPECT_EQ(std::vector<double>(y.value.data, y.value.data + 5), (std::vector<double>{3, 1, 3, 3, 2}));
  EXPECT_EQ(tests::error_of([&] { (void)ops::gather<double>(tape, in, std::array<Index, 1>{3}); }),
            "gather: expected places from 0 to 2, got 3");
}

TEST(ElementwiseOps, RepeatSumsWhatComesBack) {
  expect_gradients({random_values({2, 3, 4, 1}, 1)},
                   [](Tape<D>& tape, Vars in) { return multiply(tape, repeat(tape, in[0], 5), repeat(tape, in[0], 5)); });
}

TEST(ElementwiseOps, ConcatGivesEveryPartItsGradient) {
  expect_gradients({x(1), random_values({2, 3, 2, 1}, 2)}, [](Tape<D>& tape, Vars in) {
    const std::array<Var<D>, 3> parts{in[0], in[1], in[0]};
    return unary(tape, Unary::square, concat<D>(tape, parts));
  });
}

TEST(Slices, MayOverlapAndLeaveThingsOut) {
  expect_gradients({random_values({2, 3, 1, 6}, 1)}, [](Tape<D>& tape, Vars in) {
    const Var<D> whole = unary(tape, Unary::square, in[0]);
    const Var<D> a = slice(whole, 1, 3), b = slice(whole, 2, 3);
    return multiply(tape, a, gated(tape, Unary::silu, a, b));
  });
  // Of the input itself, of pieces and of slices.
  expect_gradients({random_values({2, 3, 1, 6}, 1)}, [](Tape<D>& tape, Vars in) {
    std::array<Var<D>, 2> p;
    split<D>(tape, unary(tape, Unary::square, in[0]), std::array<Index, 2>{2, 4}, p);
    return multiply(tape, slice(slice(p[1], 1, 3), 0, 2), add(tape, slice(p[1], 2, 2), add(tape, p[0], slice(in[0], 4, 2))));
  });
  Context context(1);
  Tape<D> tape(context);
  testing::Values values = x();
  const Var<D> var = tape.input(contiguous(values.data.data(), {2, 3, 2, 5}));
  EXPECT_THROW((void)slice(var, 2, 4), Error);
}

TEST(Detach, LetsNoGradientBack) {
  Context context(1);
  Tape<D> tape(context);
  testing::Values values = x();
  const Var<D> in = tape.input(contiguous(values.data.data(), {2, 3, 2, 5}), true);
  const Var<D> y = multiply(tape, in, detach(tape, unary(tape, Unary::square, in)));
  tape.backward(y);
  const View<const D, 4> dx = tape.arrived(in);
  EXPECT_DOUBLE_EQ(dx(1, 2, 1, 4), in.value(1, 2, 1, 4) * in.value(1, 2, 1, 4));
}

TEST(Largest, IsThatOfARowOrOfAHeadInItsSequence) {
  Context context(2);
  Tape<D> tape(context);
  testing::Values values{{1, 3, 2, 2}, {1, 2, 8, -3, 5, 4, 6, 7, 0, -1, -2, -9}};
  const Var<D> x = tape.input(contiguous(values.data.data(), values.shape), true);
  const auto numbers = [](Var<D> y) { return std::vector<D>(y.value.data, y.value.data + y.value.size()); };
  EXPECT_EQ(largest(tape, x).shape(), (Shape4{1, 3, 2, 1}));
  EXPECT_EQ(numbers(largest(tape, x)), (std::vector<D>{2, 8, 5, 7, 0, -2}));
  EXPECT_EQ(numbers(largest(tape, x, true)), (std::vector<D>{5, 8, 5, 8, 5, 8}));
  const std::vector<std::int64_t> offsets{0, 1, 1, 3};
  EXPECT_EQ(numbers(largest(tape, x, true, {.offsets = offsets})), (std::vector<D>{2, 8, 5, 7, 5, 7}));
  EXPECT_FALSE(largest(tape, x).wanted());
}

TEST(Neighbours, AreThoseOfEveryStridethVector) {
  Context context(2);
  Tape<D> tape(context);
  testing::Values values{{1, 4, 1, 2}, {1, 10, 2, 20, 3, 30, 4, 40}};
  const Var<D> y = neighbours(tape, tape.input(contiguous(values.data.data(), values.shape)), 2);
  const std::vector<D> want{0, 1, 2, 0, 10, 20, 2, 3, 4, 20, 30, 40};
  ASSERT_EQ(y.shape(), (Shape4{1, 2, 1, 6}));
  EXPECT_EQ(std::vector<D>(y.value.data, y.value.data + 12), want);
}

TEST(TokenOps, HaveTheGradientsOfTheirEquations) {
  const testing::Values in = random_values({2, 7, 2, 3}, 1);
  expect_gradients({in}, [](Tape<D>& tape, Vars v) { return running_sum(tape, v[0]); });
  // The angle itself jumps by whole turns; its sine does not.
  expect_gradients({in}, [](Tape<D>& tape, Vars v) { return unary(tape, Unary::sin, running_angle(tape, v[0])); });
  expect_gradients({in}, [](Tape<D>& tape, Vars v) { return running_mean(tape, v[0]); });
  expect_gradients({in}, [](Tape<D>& tape, Vars v) { return mean(tape, v[0]); });
  expect_gradients({in}, [](Tape<D>& tape, Vars v) { return shift(tape, v[0]); });
  for (const Index stride : {1, 2, 3})
    expect_gradients({random_values({2, 7, 1, 3}, 1)}, [=](Tape<D>& tape, Vars v) {
      return multiply(tape, neighbours(tape, v[0], stride), neighbours(tape, v[0], stride));
    });
  // Again where something has arrived before.
  expect_gradients({in}, [](Tape<D>& tape, Vars v) {
    return add(tape, running_mean(tape, v[0]), multiply(tape, shift(tape, v[0]), multiply(tape, mean(tape, v[0]), v[0])));
  });
}

TEST(TokenOps, LocalSumsHaveTheGradientsOfTheirEquations) {
  const testing::Values v = random_values({2, 12, 2, 3}, 1), start = random_values({2, 2, 1, 6}, 9);
  for (const Index tokens : {12, 1})
    expect_gradients({v, random_values({2, tokens, 2, 9}, 2)}, [&](Tape<D>& tape, Vars in) {
      Var<D> state = tape.make({2, 1, 2, 6}, {});
      std::ranges::copy(start.data, state.value.data);
      return local_sum(tape, in[0], in[1], 3, {.state = &state});
    });
  for (const Index tokens : {12, 1})
    expect_gradients({v, random_values({2, tokens, 2, 27}, 2)},
                     [](Tape<D>& tape, Vars in) { return local_image_sum(tape, in[0], in[1], 3, 4); });
}

TEST(TokenOps, CutAnywhereGiveTheWhole) {
  Context context(1);
  Tape<D> tape(context, Record::no);
  testing::Values values = random_values({2, 6, 1, 3}, 1), weights = random_values({2, 6, 1, 9}, 2);
  const Var<D> v = tape.input(contiguous(values.data.data(), {2, 6, 1, 3}));
  const Var<D> w = tape.input(contiguous(weights.data.data(), {2, 6, 1, 9}));
  std::vector<D> sum(6), mean_sum(6), last(6), near(12);
  Var<D> last_state = tape.input(contiguous(last.data(), {2, 1, 1, 3})),
         near_state = tape.input(contiguous(near.data(), {2, 1, 2, 3}));
  const auto run = [&](Index begin, Index end) {
    const auto tokens = [&](Var<D> whole) { return Tape<D>::alias(whole, slice(whole.value, 1, begin, end - begin)); };
    const std::array<std::int64_t, 2> positions{begin, begin};
    const std::array<Var<D>, 4> parts{
        running_sum<D>(tape, tokens(v), {{}, contiguous(sum.data(), {2, 1, 3})}),
        running_mean<D>(tape, tokens(v), {{.sequences = {.positions = positions}}, contiguous(mean_sum.data(), {2, 1, 3})}),
        shift(tape, tokens(v), {.state = &last_state}),
        local_sum(tape, tokens(v), tokens(w), 3, {.state = &near_state}),
    };
    return concat<D>(tape, parts);
  };
  const Var<D> whole = run(0, 6);
  for (auto* state : {&sum, &mean_sum, &last, &near}) std::fill(state->begin(), state->end(), 0.0);
  for (const auto& [begin, end] : {std::array<Index, 2>{0, 1}, {1, 4}, {4, 6}}) {
    const Var<D> got = run(begin, end);
    for (Index b = 0; b < 2; ++b)
      for (Index t = begin; t < end; ++t)
        for (Index d = 0; d < 12; ++d) EXPECT_DOUBLE_EQ(got.value(b, t - begin, 0, d), whole.value(b, t, 0, d)) << t << " " << d;
  }
}

TEST(Positions, CountFromOneAndReadATable) {
  static constexpr std::array<std::int64_t, 2> kPositions{4, 4};
  static constexpr Sequences kFour{.positions = kPositions};
  expect_gradients({random_values({2, 3, 1, 2}, 1), random_values({1, 1, 8, 2}, 2)}, [](Tape<D>& tape, Vars in) {
    const Var<D> rows = position_table(tape, in[1], 2, 3, kFour);
    return multiply(tape, add(tape, in[0], rows), position<D>(tape, 2, 3, kFour));
  });
  Context context(1);
  Tape<D> tape(context);
  const Var<D> t = position<D>(tape, 2, 3, kFour);
  EXPECT_EQ(t.shape(), (Shape4{1, 3, 1, 1})) << "the same for both sequences";
  EXPECT_EQ(t.value(0, 2, 0, 0), 7);
  EXPECT_THROW((void)position_table(tape, t, 2, 3, kFour), Error);
}

}  // namespace
}  // namespace isomer

#include "isomer/kernels/rotary/rotary.h"

#include "isomer/kernels/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

using testing::Array;
using testing::Layout;

/// The definition, in double, on dense arrays: x [B, T, H, D], angle [B, T, G, D/2].
std::vector<double> reference(const std::vector<double>& x, const std::vector<double>& angle, Index H, Index G, Index D) {
  std::vector<double> y(x.size());
  const auto half = std::size_t(D / 2);
  for (std::size_t row = 0; row * std::size_t(D) < x.size(); ++row) {
    const std::size_t token = row / std::size_t(H), head = row % std::size_t(H), at = row * std::size_t(D);
    for (std::size_t n = 0; n < half; ++n) {
      const double theta = angle[(token * std::size_t(G) + (G == 1 ? 0 : head)) * half + n];
      y[at + n] = x[at + n] * std::cos(theta) - x[at + half + n] * std::sin(theta);
      y[at + half + n] = x[at + n] * std::sin(theta) + x[at + half + n] * std::cos(theta);
    }
  }
  return y;
}

std::vector<double> position_angles(const std::array<Index, 4>& shape, RotaryPositions p) {
  std::vector<double> angle;
  for (Index b = 0; b < shape[0]; ++b)
    for (Index t = 0; t < shape[1]; ++t)
      for (Index n = 0; n < shape[3] / 2; ++n)
        angle.push_back(double(p.offset + t) * std::pow(p.base, -2.0 * double(n) / double(shape[3])));
  return angle;
}

constexpr std::array<Index, 4> kShapes[] = {{1, 1, 1, 2}, {2, 3, 2, 6}, {1, 70, 3, 8}, {2, 5, 1, 34}};

template <class T>
class RotaryTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RotaryTest, Types);

TYPED_TEST(RotaryTest, TurnsByPositions) {
  Context context(2);
  for (const auto& shape : kShapes)
    for (Layout layout : testing::kLayouts)
      for (std::int64_t offset : {0, 1000, 3000000}) {
        Rng rng(5);
        const Array<TypeParam, 4> x(shape, layout, rng), y(shape, layout), back(shape, layout);
        const RotaryPositions positions{.base = 500, .offset = offset};
        rotary<TypeParam>(x.view, positions, y.view, context);
        const auto want = reference(x.values(), position_angles(shape, positions), shape[2], 1, shape[3]);
        // Beyond 2^19 whole turns are taken off in double, to about 1e-9.
        const double slack = offset > 100000 && sizeof(TypeParam) == 8 ? 1e7 : 0;
        testing::expect_close<TypeParam>(y.values(), want, 4 + slack, "y");
        EXPECT_TRUE(y.intact());
        rotary_vjp<TypeParam>(y.view, positions, back.view, context);
        testing::expect_close<TypeParam>(back.values(), x.values(), 8, "the way back");
      }
}

TYPED_TEST(RotaryTest, TurnsByGivenAnglesAndHasTheirGradient) {
  Context context(2);
  for (const auto& shape : kShapes)
    for (Layout layout : testing::kLayouts)
      for (Index G : {Index(1), shape[2]}) {
        Rng rng(6);
        const std::array<Index, 4> angle_shape{shape[0], shape[1], G, shape[3] / 2};
        const Array<TypeParam, 4> x(shape, layout, rng), dy(shape, layout, rng), angle(angle_shape, layout, rng);
        const Array<TypeParam, 4> y(shape, layout), dx(shape, layout), dangle(angle_shape, layout);
        rotary<TypeParam>(x.view, angle.view, y.view, context);
        rotary_vjp<TypeParam>(x.view, dy.view, angle.view, {.dx = dx.view, .dangle = dangle.view}, context);
        auto xs = x.values(), angles = angle.values();
        const auto up = dy.values();
        const auto turned = [&] { return reference(xs, angles, shape[2], G, shape[3]); };
        const auto loss = [&] { return testing::dot(up, turned()); };
        testing::expect_close<TypeParam>(y.values(), turned(), 4, "y");
        const double multiple = sizeof(TypeParam) == 8 ? testing::kDifferenceMultiple : 16;
        testing::expect_close<TypeParam>(dx.values(), testing::differences(xs, loss), multiple, "dx");
        testing::expect_close<TypeParam>(dangle.values(), testing::differences(angles, loss), multiple, "dangle");
        EXPECT_TRUE(y.intact() && dx.intact() && dangle.intact());
      }
}

TYPED_TEST(RotaryTest, DoesNotDependOnTheNumberOfThreadsAndWorksInPlace) {
  std::vector<double> first;
  for (int threads : {1, 2, 7}) {
    Context context(threads);
    Rng rng(8);
    const Array<TypeParam, 4> x({2, 150, 3, 10}, Layout::gaps, rng), angle({2, 150, 1, 5}, Layout::gaps, rng);
    const Array<TypeParam, 4> dangle({2, 150, 1, 5}), y({2, 150, 3, 10});
    rotary<TypeParam>(x.view, angle.view, y.view, context);
    rotary_vjp<TypeParam>(x.view, y.view, angle.view, {.dangle = dangle.view}, context);
    rotary<TypeParam>(x.view, angle.view, x.view, context);
    EXPECT_EQ(x.values(), y.values());
    std::vector<double> all = x.values();
    for (double d : dangle.values()) all.push_back(d);
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << threads << " threads";
  }
}

TEST(Rotary, TakesNoTokens) {
  Context context(1);
  const Array<float, 4> x({2, 0, 3, 4}), angle({2, 0, 1, 2});
  rotary<float>(x.view, RotaryPositions{}, x.view, context);
  rotary<float>(x.view, angle.view, x.view, context);
  rotary_vjp<float>(x.view, x.view, angle.view, {.dx = x.view, .dangle = angle.view}, context);
}

TEST(RotaryErrors, SayWhatWasExpected) {
  Context context(1);
  using tests::error_of;
  Rng rng(1);
  const Array<float, 4> x({1, 2, 3, 4}, Layout::dense, rng), odd({1, 2, 3, 5}), angle({1, 2, 2, 2}), one({1, 2, 1, 2});
  EXPECT_EQ(error_of([&] { rotary<float>(odd.view, RotaryPositions{}, odd.view, context); }),
            "rotary: expected an even D, got 5");
  EXPECT_EQ(error_of([&] { rotary<float>(x.view, RotaryPositions{}, odd.view, context); }),
            "rotary: expected y of the shape of x, [1, 2, 3, 4], got [1, 2, 3, 5]");
  EXPECT_EQ(error_of([&] { rotary<float>(x.view, {.base = 0}, x.view, context); }), "rotary: expected base > 0, got 0");
  EXPECT_EQ(error_of([&] { rotary<float>(x.view, angle.view, x.view, context); }),
            "rotary: expected angle [1, 2, 1 or 3, 2], got [1, 2, 2, 2]");
  const Array<float, 4> each({1, 2, 3, 2});
  EXPECT_EQ(error_of([&] { rotary_vjp<float>(x.view, x.view, one.view, {.dangle = each.view}, context); }),
            "rotary_vjp: expected dangle with 1 heads, as angle has, got 3");
}

}  // namespace
}  // namespace isomer

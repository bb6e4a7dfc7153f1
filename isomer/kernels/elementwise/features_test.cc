#include "isomer/kernels/elementwise/features.h"

#include "isomer/kernels/elementwise/cumulative.h"
#include "isomer/kernels/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

using testing::Array;
using testing::Layout;
using Shape = std::array<Index, 4>;

std::vector<double> softmax_of(const std::vector<double>& x, Index D) {
  std::vector<double> y(x.size());
  for (std::size_t row = 0; row < x.size(); row += std::size_t(D)) {
    double sum = 0;
    for (std::size_t d = 0; d < std::size_t(D); ++d) sum += std::exp(x[row + d]);
    for (std::size_t d = 0; d < std::size_t(D); ++d) y[row + d] = std::exp(x[row + d]) / sum;
  }
  return y;
}

std::vector<double> taylor_of(const std::vector<double>& x, Index width) {
  const auto d = std::size_t(width);
  const double root = std::sqrt(double(width));
  std::vector<double> y;
  for (std::size_t row = 0; row < x.size(); row += d) {
    y.push_back(1);
    for (std::size_t i = 0; i < d; ++i) y.push_back(x[row + i] / std::sqrt(root));
    for (std::size_t i = 0; i < d; ++i) y.push_back(x[row + i] * x[row + i] / (std::sqrt(2.0) * root));
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t j = i + 1; j < d; ++j) y.push_back(x[row + i] * x[row + j] / root);
  }
  return y;
}

constexpr Shape kShapes[] = {{1, 1, 1, 1}, {2, 3, 2, 5}, {1, 70, 2, 8}, {2, 2, 1, 19}, {2, 0, 3, 4}};
template <class T>
constexpr double kSlopeMultiple = sizeof(T) == 8 ? testing::kDifferenceMultiple : 24;

template <class T>
class FeaturesTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FeaturesTest, Types);

TYPED_TEST(FeaturesTest, SoftmaxFollowsTheDefinitionAndItsDifferences) {
  using T = TypeParam;
  Context context(2);
  for (const Shape& shape : kShapes)
    for (Layout layout : testing::kLayouts) {
      Rng rng(3);
      const Array<T, 4> x(shape, layout, rng), dy(shape, layout, rng), y(shape, layout), dx(shape, layout);
      softmax<T>(x.view, y.view, context);
      softmax_vjp<T>(y.view, dy.view, dx.view, Accumulate::set, context);
      auto xs = x.values();
      const auto up = dy.values();
      testing::expect_close<T>(y.values(), softmax_of(xs, shape[3]), 6, "y");
      if (shape[3] > 1) {
        auto want = testing::differences(xs, [&] { return testing::dot(up, softmax_of(xs, shape[3])); });
        testing::expect_close<T>(dx.values(), want, kSlopeMultiple<T>, "dx");
        softmax_vjp<T>(y.view, dy.view, dx.view, Accumulate::add, context);
        for (double& v : want) v *= 2;
        testing::expect_close<T>(dx.values(), want, kSlopeMultiple<T>, "dx, added");
      }
      EXPECT_TRUE(y.intact() && dx.intact());
      softmax<T>(x.view, x.view, context);
      EXPECT_EQ(x.values(), y.values());
    }
}

TYPED_TEST(FeaturesTest, SoftmaxOfExtremeRows) {
  using T = TypeParam;
  Context context(1);
  const double inf = std::numeric_limits<double>::infinity();
  for (Index D : {3, 11}) {
    Array<T, 4> x({1, 1, 2, D});
    std::vector<double> values(std::size_t(2 * D), -1e30), want(std::size_t(2 * D), 0.0);
    values[1] = 1e30, want[1] = 1;
    for (Index d = D; d < 2 * D; ++d) values[std::size_t(d)] = -inf;
    values[std::size_t(2 * D - 1)] = -5000, want[std::size_t(2 * D - 1)] = 1;
    x.set(values);
    softmax<T>(x.view, x.view, context);
    EXPECT_EQ(x.values(), want);
  }
}

TYPED_TEST(FeaturesTest, TaylorFollowsTheDefinitionAndItsDifferences) {
  using T = TypeParam;
  Context context(2);
  for (const Shape& shape : kShapes)
    for (Layout layout : testing::kLayouts) {
      Rng rng(4);
      const Shape wide{shape[0], shape[1], shape[2], taylor_size(shape[3])};
      const Array<T, 4> x(shape, layout, rng), dy(wide, layout, rng), y(wide, layout), dx(shape, layout);
      taylor_features<T>(x.view, y.view, context);
      taylor_features_vjp<T>(x.view, dy.view, dx.view, Accumulate::set, context);
      auto xs = x.values();
      const auto up = dy.values();
      testing::expect_close<T>(y.values(), taylor_of(xs, shape[3]), 4, "y");
      // A row's gradient is its own: differences of single rows keep the test quick.
      std::vector<double> want;
      const auto d = std::size_t(shape[3]), D = std::size_t(wide[3]);
      for (std::size_t row = 0; row * d < xs.size(); ++row) {
        std::vector<double> one(xs.begin() + Index(row * d), xs.begin() + Index((row + 1) * d));
        const std::vector<double> its(up.begin() + Index(row * D), up.begin() + Index((row + 1) * D));
        for (double g : testing::differences(one, [&] { return testing::dot(its, taylor_of(one, shape[3])); })) want.push_back(g);
      }
      testing::expect_close<T>(dx.values(), want, kSlopeMultiple<T>, "dx");
      taylor_features_vjp<T>(x.view, dy.view, dx.view, Accumulate::add, context);
      for (double& v : want) v *= 2;
      testing::expect_close<T>(dx.values(), want, kSlopeMultiple<T>, "dx, added");
      EXPECT_TRUE(y.intact() && dx.intact());
    }
}

TYPED_TEST(FeaturesTest, TaylorFeaturesAreAKernel) {
  using T = TypeParam;
  Context context(1);
  Rng rng(5);
  const Index d = 16, D = taylor_size(d);
  EXPECT_EQ(D, 153);
  const Array<T, 4> x({1, 2, 1, d}, Layout::dense, rng), y({1, 2, 1, D});
  taylor_features<T>(x.view, y.view, context);
  const auto xs = x.values(), ys = y.values();
  double z = 0, product = 0;
  for (std::size_t i = 0; i < 16; ++i) z += xs[i] * xs[16 + i] / 4;
  for (std::size_t i = 0; i < 153; ++i) product += ys[i] * ys[153 + i];
  testing::expect_close<T>({product}, {1 + z + z * z / 2}, 16, "1 + z + z²/2");
}

TYPED_TEST(FeaturesTest, CumulativeSumFollowsPlainLoops) {
  using T = TypeParam;
  Context context(2);
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 5, 3, 7}, Shape{1, 40, 2, 150}, Shape{2, 0, 3, 4}})
    for (Layout layout : testing::kLayouts) {
      Rng rng(6);
      const Array<T, 4> x(shape, layout, rng), y(shape, layout), dx(shape, layout, rng);
      const Array<double, 3> before({shape[0], shape[2], shape[3]}, layout, rng), after({shape[0], shape[2], shape[3]}, layout);
      const auto xs = x.values(), start = before.values();
      auto want = xs, want_back = dx.values(), want_after = start, want_start = start;
      const auto width = std::size_t(shape[2] * shape[3]), tokens = std::size_t(shape[1]);
      for (std::size_t c = 0; c < start.size(); ++c) {
        const auto at = [&](std::size_t t) { return (c / width * tokens + t) * width + c % width; };
        for (std::size_t t = 0; t < tokens; ++t) want[at(t)] = want_after[c] += xs[at(t)];
        for (std::size_t t = tokens; t-- > 0;) want_back[at(t)] += want_start[c] += xs[at(t)];
      }
      cumulative_sum<T>(x.view, {.initial = before.view, .final = after.view}, y.view, context);
      testing::expect_close<T>(y.values(), want, 1, "y");
      EXPECT_EQ(after.values(), want_after);
      cumulative_sum_vjp<T>(x.view, {.initial = before.view, .final = after.view}, dx.view, Accumulate::add, context);
      testing::expect_close<T>(dx.values(), want_back, 1, "dx");
      EXPECT_EQ(after.values(), want_start);
      EXPECT_TRUE(y.intact() && dx.intact() && after.intact());
    }
}

TEST(CumulativeSum, OfAnglesLeavesWholeTurnsOut) {
  // Some 40000 turns in each direction: float alone would keep 2 digits of the angle.
  constexpr Index kTokens = 200000;
  std::vector<float> x(2 * kTokens), y(2 * kTokens);
  for (Index t = 0; t < kTokens; ++t) {
    x[std::size_t(2 * t)] = 1.25f;
    x[std::size_t(2 * t + 1)] = -1.25f;
  }
  Context context(1);
  const auto all = [](std::vector<float>& of) { return contiguous(of.data(), {1, kTokens, 1, 2}); };
  cumulative_sum<float>(all(x), {.turns = true}, all(y), context);
  double worst = 0;
  for (Index t = 0; t < kTokens; ++t)
    for (Index c = 0; c < 2; ++c) {
      const double exact = (c == 0 ? 1.25 : -1.25) * double(t + 1), got = double(y[std::size_t(2 * t + c)]);
      worst = std::max({worst, std::abs(std::sin(got) - std::sin(exact)), std::abs(std::cos(got) - std::cos(exact))});
      ASSERT_LE(std::abs(got), 3.1416);
    }
  EXPECT_LE(worst, 4e-7);
}

TYPED_TEST(FeaturesTest, CumulativeSumCanBeCutAnywhere) {
  using T = TypeParam;
  Context context(2);
  Rng rng(7);
  const Array<T, 4> x({2, 9, 2, 5}, Layout::gaps, rng), whole({2, 9, 2, 5}), parts({2, 9, 2, 5});
  cumulative_sum<T>(x.view, {}, whole.view, context);
  for (Index cut = 0; cut <= 9; ++cut) {
    const Array<double, 3> state({2, 2, 5});
    const View<const T, 4> in = x.view;
    cumulative_sum<T>(slice(in, 1, 0, cut), {.final = state.view}, slice(parts.view, 1, 0, cut), context);
    cumulative_sum<T>(slice(in, 1, cut, 9 - cut), {.initial = state.view}, slice(parts.view, 1, cut, 9 - cut), context);
    EXPECT_EQ(parts.values(), whole.values()) << cut;
  }
}

TYPED_TEST(FeaturesTest, DoesNotDependOnTheNumberOfThreads) {
  using T = TypeParam;
  std::vector<double> first;
  for (int threads : {1, 2, 7}) {
    Context context(threads);
    Rng rng(8);
    const Shape shape{3, 90, 3, 13}, wide{3, 90, 3, taylor_size(13)};
    const Array<T, 4> x(shape, Layout::gaps, rng), up(wide, Layout::gaps, rng), y(shape), sums(shape), dx(shape), features(wide);
    softmax<T>(x.view, y.view, context);
    cumulative_sum<T>(x.view, {}, sums.view, context);
    taylor_features<T>(x.view, features.view, context);
    taylor_features_vjp<T>(x.view, up.view, dx.view, Accumulate::set, context);
    softmax_vjp<T>(y.view, x.view, dx.view, Accumulate::add, context);
    std::vector<double> all = y.values();
    for (const auto& part : {sums.values(), features.values(), dx.values()}) all.insert(all.end(), part.begin(), part.end());
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << threads << " threads";
  }
}

TEST(FeaturesErrors, SayWhatWasExpected) {
  Context context(1);
  using tests::error_of;
  const Array<float, 4> x({1, 2, 3, 4}), narrow({1, 2, 3, 3}), wide({1, 2, 3, 15});
  const Array<double, 3> state({1, 3, 3});
  EXPECT_EQ(error_of([&] { softmax<float>(x.view, narrow.view, context); }),
            "softmax: expected y of the shape of x, [1, 2, 3, 4], got [1, 2, 3, 3]");
  EXPECT_EQ(error_of([&] { softmax_vjp<float>(x.view, narrow.view, x.view, Accumulate::set, context); }),
            "softmax_vjp: expected dy of the shape of y, [1, 2, 3, 4], got [1, 2, 3, 3]");
  EXPECT_EQ(error_of([&] { taylor_features<float>(x.view, x.view, context); }),
            "taylor_features: expected y [1, 2, 3, 15], got [1, 2, 3, 4]");
  EXPECT_EQ(error_of([&] { taylor_features_vjp<float>(x.view, wide.view, narrow.view, Accumulate::set, context); }),
            "taylor_features_vjp: expected dx of the shape of x, [1, 2, 3, 4], got [1, 2, 3, 3]");
  EXPECT_EQ(error_of([&] { cumulative_sum<float>(x.view, {}, narrow.view, context); }),
            "cumulative_sum: expected y of the shape of x, [1, 2, 3, 4], got [1, 2, 3, 3]");
  EXPECT_EQ(error_of([&] { cumulative_sum<float>(x.view, {.initial = state.view}, x.view, context); }),
            "cumulative_sum: expected initial [1, 3, 4], got [1, 3, 3]");
  EXPECT_EQ(error_of([&] { cumulative_sum_vjp<float>(x.view, {.final = state.view}, x.view, Accumulate::set, context); }),
            "cumulative_sum_vjp: expected dinitial [1, 3, 4], got [1, 3, 3]");
}

}  // namespace
}  // namespace isomer

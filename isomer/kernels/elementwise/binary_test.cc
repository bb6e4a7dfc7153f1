#include "isomer/kernels/elementwise/binary.h"

#include "isomer/kernels/elementwise/sum.h"
#include "isomer/kernels/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

using testing::Array;
using testing::Layout;
using Shape = std::array<Index, 4>;

/// f(where in a, where in b, where in y) for every element of the common shape, positions being row-major.
template <class F>
void each(const Shape& a, const Shape& b, F f) {
  Shape y;
  for (std::size_t axis = 0; axis < 4; ++axis) y[axis] = a[axis] == 1 ? b[axis] : a[axis];
  const auto position = [](const Shape& shape, const Shape& i) {
    Index n = 0;
    for (std::size_t axis = 0; axis < 4; ++axis) n = n * shape[axis] + (shape[axis] == 1 ? 0 : i[axis]);
    return std::size_t(n);
  };
  Shape i{};
  for (i[0] = 0; i[0] < y[0]; ++i[0])
    for (i[1] = 0; i[1] < y[1]; ++i[1])
      for (i[2] = 0; i[2] < y[2]; ++i[2])
        for (i[3] = 0; i[3] < y[3]; ++i[3]) f(position(a, i), position(b, i), position(y, i));
}

/// Sums are judged by the size of their terms: |got − want| ≤ 4 epsilon Σ |terms|.
template <class T>
void expect_sums(const std::vector<double>& got, const std::vector<double>& want, const std::vector<double>& size,
                 const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::abs(got[i] - want[i]), 4 * double(std::numeric_limits<T>::epsilon()) * size[i]) << what << " at " << i;
}

struct Pair {
  Shape a, b, y;
};
constexpr Pair kPairs[] = {
    {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}},       {{2, 3, 2, 5}, {2, 3, 2, 5}, {2, 3, 2, 5}},
    {{2, 70, 3, 9}, {1, 1, 3, 9}, {2, 70, 3, 9}},     {{2, 70, 3, 9}, {1, 1, 1, 9}, {2, 70, 3, 9}},
    {{2, 7, 3, 17}, {2, 7, 3, 1}, {2, 7, 3, 17}},     {{2, 7, 3, 17}, {1, 1, 1, 1}, {2, 7, 3, 17}},
    {{3, 5, 2, 33}, {1, 5, 2, 33}, {3, 5, 2, 33}},    {{3, 5, 2, 8}, {3, 1, 2, 1}, {3, 5, 2, 8}},
    {{3, 5, 2, 8}, {1, 5, 1, 8}, {3, 5, 2, 8}},       {{2, 1, 3, 1}, {1, 6, 1, 7}, {2, 6, 3, 7}},
    {{1, 1, 1, 5000}, {1, 3, 1, 1}, {1, 3, 1, 5000}}, {{2, 0, 3, 4}, {1, 1, 3, 4}, {2, 0, 3, 4}},
};
constexpr Binary kOperations[] = {Binary::add, Binary::subtract, Binary::multiply};

template <class T>
class BinaryTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(BinaryTest, Types);

TYPED_TEST(BinaryTest, FollowsPlainLoops) {
  using T = TypeParam;
  Context context(2);
  for (const Pair& s : kPairs)
    for (Binary f : kOperations)
      for (Layout layout : testing::kLayouts) {
        Rng rng(3);
        const Array<T, 4> a(s.a, layout, rng), b(s.b, layout, rng), dy(s.y, layout, rng), y(s.y, layout);
        const Array<T, 4> da(s.a, layout), db(s.b, layout, rng);
        const auto as = a.values(), bs = b.values(), up = dy.values();
        std::vector<double> want(up.size()), want_a(as.size()), want_b = db.values(), size_a = want_a, size_b = want_b;
        for (double& v : size_b) v = std::abs(v);
        each(s.a, s.b, [&](std::size_t i, std::size_t j, std::size_t n) {
          want[n] = f == Binary::add ? as[i] + bs[j] : f == Binary::subtract ? as[i] - bs[j] : as[i] * bs[j];
          const double to_a = f == Binary::multiply ? up[n] * bs[j] : up[n];
          const double to_b = f == Binary::add ? up[n] : f == Binary::subtract ? -up[n] : up[n] * as[i];
          want_a[i] += to_a, size_a[i] += std::abs(to_a);
          want_b[j] += to_b, size_b[j] += std::abs(to_b);
        });
        binary<T>(f, a.view, b.view, y.view, context);
        const BinaryGradients<T> gradients{.da = da.view, .db = db.view, .accumulate_b = Accumulate::add};
        binary_vjp<T>(f, a.view, b.view, dy.view, gradients, context);
        testing::expect_close<T>(y.values(), want, 1, "y");
        expect_sums<T>(da.values(), want_a, size_a, "da");
        expect_sums<T>(db.values(), want_b, size_b, "db");
        EXPECT_TRUE(y.intact() && da.intact() && db.intact());
      }
}

TYPED_TEST(BinaryTest, DoesNotDependOnTheNumberOfThreads) {
  using T = TypeParam;
  for (const Shape& small : {Shape{1, 1, 3, 19}, Shape{1, 1, 1, 19}, Shape{3, 700, 3, 1}, Shape{1, 1, 1, 1}}) {
    std::vector<double> first;
    for (int threads : {1, 2, 7}) {
      Context context(threads);
      Rng rng(8);
      const Shape shape{3, 700, 3, 19};
      const Array<T, 4> a(shape, Layout::gaps, rng), b(small, Layout::dense, rng), dy(shape, Layout::dense, rng);
      const Array<T, 4> y(shape), da(shape), db(small);
      binary<T>(Binary::multiply, a.view, b.view, y.view, context);
      binary_vjp<T>(Binary::multiply, a.view, b.view, dy.view, {.da = da.view, .db = db.view}, context);
      std::vector<double> all = y.values();
      for (const auto& part : {da.values(), db.values()}) all.insert(all.end(), part.begin(), part.end());
      if (first.empty()) first = all;
      EXPECT_EQ(all, first) << threads << " threads";
    }
  }
}

TYPED_TEST(BinaryTest, SumsAreAsGoodAsSumsInDouble) {
  using T = TypeParam;
  Context context(2);
  const Array<T, 4> x({1, 30000, 1, 8}), columns({1, 1, 1, 8}), rows({1, 1, 1, 1});
  Rng rng(9);
  x.for_each([&](T& v) { v = T(1 + 1e-3 * rng.uniform()); });
  std::vector<double> want(8), total(1);
  const auto xs = x.values();
  for (std::size_t i = 0; i < xs.size(); ++i) want[i % 8] += xs[i], total[0] += xs[i];
  sum_to<T>({.x = x.view}, columns.view, Accumulate::set, context);
  sum_to<T>({.x = x.view}, rows.view, Accumulate::set, context);
  testing::expect_close<T>(columns.values(), want, 32, "over tokens");
  testing::expect_close<T>(rows.values(), total, 32, "over all");
}

TYPED_TEST(BinaryTest, SumsShortRowsOverTokens) {
  using T = TypeParam;
  Context context(2);
  // x · weight over B and T; the weight has one number for each row, or none.
  for (const Shape& shape : {Shape{2, 70, 3, 8}, Shape{1, 129, 300, 9}, Shape{3, 2, 2, 1}})
    for (Layout layout : {Layout::dense, Layout::gaps}) {
      Rng rng(4);
      const auto& [B, L, H, D] = shape;
      const Array<T, 4> x(shape, layout, rng), weight({B, L, H, 1}, layout, rng), y({1, 1, H, D}, layout);
      for (const bool weighted : {true, false}) {
        std::vector<double> want(std::size_t(H * D));
        for (Index b = 0; b < B; ++b)
          for (Index t = 0; t < L; ++t)
            for (Index i = 0; i < H * D; ++i)
              want[std::size_t(i)] += double(x.view(b, t, i / D, i % D)) * (weighted ? double(weight.view(b, t, i / D, 0)) : 1.0);
        sum_to<T>({.x = x.view, .weight = weighted ? View<const T, 4>(weight.view) : View<const T, 4>{}}, y.view, Accumulate::set,
                  context);
        testing::expect_close<T>(y.values(), want, 64, "sums");
        EXPECT_TRUE(y.intact());
      }
    }
}

TYPED_TEST(BinaryTest, CopiesAddsAndSumsSquares) {
  using T = TypeParam;
  Context context(2);
  for (const Shape& shape : {Shape{2, 3, 2, 5}, Shape{1, 9, 1, 33}, Shape{1, 1, 1, 1}, Shape{2, 0, 3, 4}})
    for (Layout from : testing::kLayouts)
      for (Layout to : testing::kLayouts) {
        Rng rng(2);
        const Array<T, 4> x(shape, from, rng), y(shape, to), squares({shape[0], shape[1], shape[2], 1}, to);
        copy<T>(x.view, y.view, context);
        EXPECT_EQ(y.values(), x.values());
        add_to<T>(x.view, y.view, context);
        auto xs = x.values(), twice = xs;
        for (double& v : twice) v *= 2;
        EXPECT_EQ(y.values(), twice);
        sum_squares<T>(x.view, squares.view, context);
        std::vector<double> want(squares.values().size());
        for (std::size_t i = 0; i < xs.size(); ++i) want[i / std::size_t(shape[3])] += xs[i] * xs[i];
        testing::expect_close<T>(squares.values(), want, 8, "squares");
        // From dy = squares: 2 x dy, added to what is there.
        const auto up = squares.values();
        sum_squares_vjp<T>(x.view, squares.view, y.view, Accumulate::add, context);
        for (std::size_t i = 0; i < xs.size(); ++i) twice[i] += 2 * xs[i] * up[i / std::size_t(shape[3])];
        testing::expect_close<T>(y.values(), twice, 4, "dx");
        EXPECT_TRUE(y.intact() && squares.intact());
      }
}

TYPED_TEST(BinaryTest, ReadsRepeatedViewsAndSumsNothing) {
  using T = TypeParam;
  Context context(1);
  const T three = 3;
  const Array<T, 4> y({2, 3, 2, 5}), sum({1, 1, 2, 1});
  copy<T>({&three, y.view.shape, {}}, y.view, context);
  EXPECT_EQ(y.values(), std::vector<double>(60, 3.0));
  sum_to<T>({.x = {&three, y.view.shape, {}}, .scale = 0.5}, sum.view, Accumulate::set, context);
  EXPECT_EQ(sum.values(), std::vector<double>(2, 45.0));
  sum_to<T>({.x = {&three, {2, 0, 2, 5}, {}}}, sum.view, Accumulate::add, context);
  EXPECT_EQ(sum.values(), std::vector<double>(2, 45.0));
  sum_to<T>({.x = {&three, {2, 0, 2, 5}, {}}}, sum.view, Accumulate::set, context);
  EXPECT_EQ(sum.values(), std::vector<double>(2, 0.0));
}

TEST(BinaryErrors, SayWhatWasExpected) {
  Context context(1);
  using tests::error_of;
  const Array<float, 4> x({1, 2, 3, 4}), narrow({1, 2, 3, 3}), row({1, 1, 1, 4});
  EXPECT_EQ(error_of([&] { binary<float>(Binary::add, x.view, narrow.view, x.view, context); }),
            "binary: expected b with axes of size 1 or of the size in a, [1, 2, 3, 4], got [1, 2, 3, 3]");
  EXPECT_EQ(error_of([&] { binary<float>(Binary::add, x.view, row.view, row.view, context); }),
            "binary: expected y [1, 2, 3, 4], got [1, 1, 1, 4]");
  EXPECT_EQ(error_of([&] { binary_vjp<float>(Binary::add, x.view, row.view, row.view, {}, context); }),
            "binary_vjp: expected dy [1, 2, 3, 4], got [1, 1, 1, 4]");
  EXPECT_EQ(error_of([&] { binary_vjp<float>(Binary::add, x.view, row.view, x.view, {.da = row.view}, context); }),
            "binary_vjp: expected da [1, 2, 3, 4], got [1, 1, 1, 4]");
  EXPECT_EQ(error_of([&] { binary_vjp<float>(Binary::add, x.view, row.view, x.view, {.db = x.view}, context); }),
            "binary_vjp: expected db [1, 1, 1, 4], got [1, 2, 3, 4]");
  EXPECT_EQ(error_of([&] { copy<float>(x.view, row.view, context); }),
            "copy: expected y of the shape of x, [1, 2, 3, 4], got [1, 1, 1, 4]");
  EXPECT_EQ(error_of([&] { sum_to<float>({.x = x.view}, narrow.view, Accumulate::set, context); }),
            "sum_to: expected y with axes of size 1 or as in x, [1, 2, 3, 4], got [1, 2, 3, 3]");
  EXPECT_EQ(error_of([&] { sum_to<float>({.x = x.view, .weight = narrow.view}, row.view, Accumulate::set, context); }),
            "sum_to: expected weight with axes of size 1 or as in x, [1, 2, 3, 4], got [1, 2, 3, 3]");
  EXPECT_EQ(error_of([&] { sum_squares<float>(x.view, row.view, context); }),
            "sum_squares: expected y [1, 2, 3, 1], got [1, 1, 1, 4]");
  EXPECT_EQ(error_of([&] { sum_squares_vjp<float>(x.view, x.view, x.view, Accumulate::set, context); }),
            "sum_squares_vjp: expected dy [1, 2, 3, 1], got [1, 2, 3, 4]");
}

}  // namespace
}  // namespace isomer

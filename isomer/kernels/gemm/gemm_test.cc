#include "isomer/kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "isomer/base/error.h"
#include "isomer/base/rng.h"
#include "isomer/kernels/gemm/peak.h"
#include "tests/error_of.h"
#include "tests/quick.h"

namespace isomer {
namespace {

/// The sanitizers' run: fewer sizes.
using tests::quick;

enum class Layout { rows, columns, strided };
constexpr Layout kLayouts[] = {Layout::rows, Layout::columns, Layout::strided};

/// A matrix in the given layout inside a larger array of NaN, so that reading outside shows in the result.
template <class T>
struct Matrix {
  std::vector<T> storage;
  View<T, 2> view;

  Matrix(Index rows, Index columns, Layout layout, Rng& rng) {
    view.shape = {rows, columns};
    if (layout == Layout::rows) view.stride = {columns + 3, 1};
    if (layout == Layout::columns) view.stride = {1, rows + 4};
    if (layout == Layout::strided) view.stride = {2 * columns + 1, 2};
    const Index guard = 40;
    const Index size = rows * view.stride[0] + columns * view.stride[1] + 2 * guard;
    storage.assign(std::size_t(size), std::numeric_limits<T>::quiet_NaN());
    view.data = storage.data() + guard;
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) view(i, j) = T(rng.normal());
  }
  void fill(T value) {
    for (Index i = 0; i < view.shape[0]; ++i)
      for (Index j = 0; j < view.shape[1]; ++j) view(i, j) = value;
  }
  [[nodiscard]] Index numbers() const {
    Index n = 0;
    for (T x : storage) n += std::isnan(x) ? 0 : 1;
    return n;
  }
};

/// By pointers, inside of what Matrix has: under the sanitizers most of the time would go into the indices of this loop.
template <class T>
__attribute__((no_sanitize("address", "undefined"))) double want(View<T, 2> a, View<T, 2> b, Index i, Index j) {
  double sum = 0;
  const T *x = a.data + i * a.stride[0], *y = b.data + j * b.stride[1];
  for (Index p = 0; p < a.shape[1]; ++p, x += a.stride[1], y += b.stride[0]) sum += double(*x) * double(*y);
  return sum;
}

struct Size {
  Index M, N, K;
};

template <class T>
void expect_product(Size s, Layout la, Layout lb, Layout lc, MatmulOptions<T> options, Context& context) {
  Rng rng(std::uint64_t(s.M * 10007 + s.N * 101 + s.K));
  const Matrix<T> a(s.M, s.K, la, rng), b(s.K, s.N, lb, rng);
  Matrix<T> c(s.M, s.N, lc, rng);
  if (options.beta == T(0)) c.fill(std::numeric_limits<T>::quiet_NaN());
  const Matrix<T> before = [&] {
    Matrix<T> copy = c;
    copy.view.data = copy.storage.data() + (c.view.data - c.storage.data());
    return copy;
  }();
  matmul(a.view, b.view, c.view, context, options);
  // Standard normal factors: the sum of absolute terms is about 0.64 K.
  const double limit = std::numeric_limits<T>::epsilon() * (4 + double(s.K));
  for (Index i = 0; i < s.M; ++i)
    for (Index j = 0; j < s.N; ++j) {
      const double old = options.beta == T(0) ? 0 : double(options.beta) * double(before.view(i, j));
      const double bias = options.bias.present() ? double(options.bias(j)) : 0;
      const double expected = double(options.alpha) * want(a.view, b.view, i, j) + old + bias;
      ASSERT_NEAR(double(c.view(i, j)), expected, limit * (1 + std::fabs(double(options.alpha))))
          << s.M << "x" << s.N << "x" << s.K << " at " << i << ", " << j;
    }
  EXPECT_EQ(c.numbers(), s.M * s.N) << "wrote outside C";
}

template <class T>
class Gemm : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Gemm, Types);

TYPED_TEST(Gemm, MultipliesAnySizeInAnyLayout) {
  Context context(2);
  const Size sizes[] = {{1, 1, 1},    {1, 17, 5},     {7, 1, 3},      {6, 16, 8},
                        {13, 31, 29}, {97, 101, 103}, {150, 33, 390}, {50, 1030, 40}};
  for (const Size& s : sizes) {
    if (quick() && s.M * s.N * s.K > 100000) continue;
    for (Layout la : kLayouts)
      for (Layout lb : kLayouts)
        for (Layout lc : kLayouts) expect_product<TypeParam>(s, la, lb, lc, {}, context);
  }
}

TYPED_TEST(Gemm, AddsABiasToEveryRow) {
  Context context(2);
  std::vector<TypeParam> numbers(2 * 5000);
  Rng rng(3);
  for (TypeParam& x : numbers) x = TypeParam(rng.normal());
  // Few rows, a direct product, several blocks of depth, of columns, and no depth at all.
  const Size sizes[] = {{1, 33, 20}, {5, 7, 0}, {30, 40, 50}, {100, 130, 800}, {9, 4200, 70}};
  for (const Size& s : sizes)
    for (const Index stride : {1, 2})
      for (Layout lc : kLayouts)
        for (TypeParam beta : {TypeParam(0), TypeParam(1)}) {
          // Quick: large ones in every layout, with one of the four.
          if (quick() && s.M * s.N * s.K > 100000 && (stride == 1 || beta == 0)) continue;
          expect_product<TypeParam>(s, Layout::rows, Layout::columns, lc,
                                    {.beta = beta, .bias = {numbers.data(), {s.N}, {stride}}}, context);
        }
}

TYPED_TEST(Gemm, CutsLargeProducts) {
  Context context(2);
  expect_product<TypeParam>({20, 4200, 30}, Layout::rows, Layout::columns, Layout::rows, {}, context);
  expect_product<TypeParam>({300, 40, 800}, Layout::columns, Layout::rows, Layout::columns, {.beta = 1}, context);
  // More depth than is packed at a time.
  const std::vector<TypeParam> bias(1000, TypeParam(0.5));
  expect_product<TypeParam>({9, 1000, 2000}, Layout::rows, Layout::columns, Layout::rows,
                            {.beta = 1, .bias = {bias.data(), {1000}, {1}}}, context);
}

TYPED_TEST(Gemm, TakesFewRowsOfA) {
  Context context(2);
  for (const Index M : {1, 2, 8, 9})
    for (const Size& s : {Size{M, 1, 7}, Size{M, 6, 31}, Size{M, 1300, 70}, Size{M, 3, 4099}})
      for (TypeParam beta : {TypeParam(0), TypeParam(1), TypeParam(0.25)})
        expect_product<TypeParam>(s, Layout::rows, Layout::columns, Layout::rows, {.alpha = TypeParam(0.5), .beta = beta},
                                  context);
}

/// The numbers of a matrix in fewer bits, and the same widened again.
template <class W>
struct Narrow {
  std::vector<W> storage;
  View<const W, 2> view;

  explicit Narrow(Matrix<float>& wide) : storage(wide.storage.size()) {
    // Rounded as a whole, so that the NaNs around it are read as such.
    std::ranges::transform(wide.storage, storage.begin(), [](float x) {
      if constexpr (std::is_same_v<W, Bf16>)
        return to_bf16(x);
      else
        return to_f16(x);
    });
    std::ranges::transform(storage, wide.storage.begin(), [](W x) { return to_float(x); });
    view = {storage.data() + (wide.view.data - wide.storage.data()), wide.view.shape, wide.view.stride};
  }
};

template <class W>
class GemmOfStored : public ::testing::Test {};
using Stored = ::testing::Types<Bf16, F16>;
TYPED_TEST_SUITE(GemmOfStored, Stored);

/// Weights are widened exactly: the product is the one with the widened weights.
template <class W>
void expect_stored_product(Size s, Layout lb, Layout lc, MatmulOptions<float> options, Context& context) {
  Rng rng(std::uint64_t(s.M * 10007 + s.N * 101 + s.K));
  const Matrix<float> a(s.M, s.K, Layout::rows, rng);
  Matrix<float> b(s.K, s.N, lb, rng), c(s.M, s.N, lc, rng);
  const Narrow<W> narrow(b);
  c.fill(options.beta == 0 ? std::numeric_limits<float>::quiet_NaN() : 0.5f);
  std::vector<float> bias(std::size_t(s.N));
  for (float& x : bias) x = float(rng.normal());
  options.bias = {bias.data(), {s.N}, {1}};
  matmul(a.view, narrow.view, c.view, context, options);
  const double limit = std::numeric_limits<float>::epsilon() * (4 + double(s.K)) * (1 + std::fabs(double(options.alpha)));
  for (Index i = 0; i < s.M; ++i)
    for (Index j = 0; j < s.N; ++j) {
      const double expected =
          double(options.alpha) * want(a.view, b.view, i, j) + 0.5 * double(options.beta) + double(bias[std::size_t(j)]);
      ASSERT_NEAR(double(c.view(i, j)), expected, limit) << s.M << "x" << s.N << "x" << s.K << " at " << i << ", " << j;
    }
  EXPECT_EQ(c.numbers(), s.M * s.N) << "wrote outside C";
}

TYPED_TEST(GemmOfStored, IsTheProductWithTheWidenedWeights) {
  for (const int threads : {1, 7}) {
    Context context(threads);
    for (const Index M : {1, 8, 9})
      for (const Size& s :
           {Size{M, 1, 7}, Size{M, 6, 31}, Size{M, 1300, 70}, Size{M, 3, 4099}, Size{M, 5, 0}, Size{M, 33, 400}}) {
        if (quick() && M * s.N * s.K > 100000) continue;
        for (Layout lb : kLayouts) expect_stored_product<TypeParam>(s, lb, Layout::rows, {}, context);
        expect_stored_product<TypeParam>(s, Layout::columns, Layout::strided, {}, context);
        expect_stored_product<TypeParam>(s, Layout::columns, Layout::columns, {.alpha = -0.5f, .beta = 2}, context);
      }
  }
}

TYPED_TEST(GemmOfStored, HasTheBitsOfTheFloatsThatAreStored) {
  Context context(2);
  // Few rows and many, too large for the way of small products, which floats alone have.
  for (const Index M : {1, 8, 200}) {
    if (quick() && M > 8) continue;
    const Index N = 2000, K = 500;
    Rng rng(3);
    const Matrix<float> a(M, K, Layout::rows, rng);
    for (Layout layout : kLayouts) {
      Matrix<float> b(K, N, layout, rng);
      const Narrow<TypeParam> narrow(b);
      std::vector<float> wide(std::size_t(M * N)), stored = wide;
      matmul(a.view, b.view, contiguous(wide.data(), {M, N}), context);
      matmul(a.view, narrow.view, contiguous(stored.data(), {M, N}), context);
      EXPECT_EQ(wide, stored) << M << " rows";
    }
  }
}

/// The numbers of a matrix rounded to bf16, as floats.
Matrix<float> rounded(const Matrix<float>& x) {
  Matrix<float> near = x;
  near.view.data = near.storage.data() + (x.view.data - x.storage.data());
  for (float& number : near.storage) number = to_float(to_bf16(number));
  return near;
}

/// The product of rounded rows is exact but for the sums, whatever multiplies them.
void expect_rounded_product(Size s, Layout la, Layout lb, Layout lc, MatmulOptions<float> options, Context& context) {
  Rng rng(std::uint64_t(s.M * 10007 + s.N * 101 + s.K));
  const Matrix<float> a(s.M, s.K, la, rng), near = rounded(a);
  Matrix<float> b(s.K, s.N, lb, rng), c(s.M, s.N, lc, rng);
  const Narrow<Bf16> narrow(b);
  c.fill(options.beta == 0 ? std::numeric_limits<float>::quiet_NaN() : 0.5f);
  const std::vector<float> bias(std::size_t(s.N), 0.25f);
  options.bias = {bias.data(), {s.N}, {1}};
  options.rows = RowsOfA::bf16;
  matmul(a.view, narrow.view, c.view, context, options);
  const double limit = std::numeric_limits<float>::epsilon() * (4 + double(s.K)) * (1 + std::fabs(double(options.alpha)));
  for (Index i = 0; i < s.M; ++i)
    for (Index j = 0; j < s.N; ++j)
      ASSERT_NEAR(double(c.view(i, j)), double(options.alpha) * want(near.view, b.view, i, j) + 0.5 * double(options.beta) + 0.25,
                  limit)
          << s.M << "x" << s.N << "x" << s.K << " at " << i << ", " << j;
  EXPECT_EQ(c.numbers(), s.M * s.N) << "wrote outside C";
}

TEST(GemmOfRounded, IsTheProductOfRoundedRows) {
  for (const int threads : {1, 7}) {
    Context context(threads);
    for (const Index M : {1, 8, 9, 50, 131})
      // Depths that are odd, even, of several blocks of pairs; one row and one column of B at an odd place.
      for (const Size& s : {Size{M, 1, 2}, Size{M, 6, 31}, Size{M, 37, 64}, Size{M, 130, 70}, Size{M, 33, 1538}, Size{M, 5, 0}}) {
        if (quick() && M * s.N * s.K > 100000) continue;
        for (Layout lb : kLayouts) expect_rounded_product(s, Layout::rows, lb, Layout::rows, {}, context);
        expect_rounded_product(s, Layout::columns, Layout::columns, Layout::rows, {}, context);
        expect_rounded_product(s, Layout::strided, Layout::columns, Layout::strided, {}, context);
        expect_rounded_product(s, Layout::rows, Layout::columns, Layout::columns, {.alpha = -0.5f, .beta = 2}, context);
        expect_rounded_product(s, Layout::rows, Layout::columns, Layout::rows, {.beta = 1}, context);
      }
  }
}

/// Dense columns that follow each other without a gap, as weights do: what pairs are multiplied from.
TEST(GemmOfRounded, DoesNotDependOnTheNumberOfThreadsOrOnWhereWeightsLie) {
  const Index M = 203, N = 1100, K = 1000;
  Rng rng(3);
  const Matrix<float> a(M, K, Layout::rows, rng);
  std::vector<Bf16> numbers(std::size_t(N * K + 3));
  for (Bf16& x : numbers) x = to_bf16(float(rng.normal()));
  std::vector<float> first;
  for (const int threads : {1, 2, 7}) {
    Context context(threads);
    std::vector<float> c(std::size_t(M * N));
    const View<const Bf16, 2> b{numbers.data() + 2, {K, N}, {1, K}};
    matmul(a.view, b, contiguous(c.data(), {M, N}), context, {.rows = RowsOfA::bf16});
    if (first.empty()) first = c;
    EXPECT_EQ(c, first) << threads << " threads";
  }
  // At an odd place the way of pairs is closed: the sums are in another order.
  Context context(1);
  std::vector<float> c(std::size_t(M * N)), moved(std::size_t(M * N));
  const View<const Bf16, 2> odd{numbers.data() + 3, {K, N}, {1, K}};
  matmul(a.view, odd, contiguous(moved.data(), {M, N}), context, {.rows = RowsOfA::bf16});
  std::vector<Bf16> copy(numbers.begin() + 3, numbers.end());
  matmul(a.view, {copy.data(), {K, N}, {1, K}}, contiguous(c.data(), {M, N}), context, {.rows = RowsOfA::bf16});
  for (std::size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(c[i], moved[i], 1e-3f);
}

TEST(GemmOfRounded, RoundsToTheNearestAndKeepsWhatIsNotFinite) {
  // Ties to even on either side, what is carried over into the next exponent, the largest float, which becomes infinity.
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> numbers = {1 + 0x1p-8f,
                                1 + 0x3p-8f,
                                -1 - 0x1p-8f,
                                0x1.ffp0f,
                                std::numeric_limits<float>::max(),
                                inf,
                                -inf,
                                0.0f,
                                std::numeric_limits<float>::quiet_NaN(),
                                std::bit_cast<float>(0x7f800001U)};
  const Index M = Index(numbers.size()) + 5, K = 34;
  std::vector<float> a(std::size_t(M * K), 0.0f), c(static_cast<std::size_t>(M), 0.0f);
  for (std::size_t i = 0; i < numbers.size(); ++i) a[i * std::size_t(K) + 33 - i] = numbers[i];
  const std::vector<Bf16> ones(std::size_t(K), to_bf16(1));
  for (const Index rows : {M, Index(5)}) {
    Context context(1);
    matmul(contiguous(a.data(), {rows, K}), {ones.data(), {K, 1}, {1, K}}, contiguous(c.data(), {rows, 1}), context,
           {.rows = RowsOfA::bf16});
    for (std::size_t i = 0; i < std::min(numbers.size(), std::size_t(rows)); ++i) {
      const float expected = to_float(to_bf16(numbers[i]));
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(c[i])) << i;
      else
        EXPECT_EQ(c[i], expected) << i;
    }
  }
}

TYPED_TEST(Gemm, ScalesAndAdds) {
  Context context(1);
  for (TypeParam alpha : {TypeParam(1), TypeParam(-0.5), TypeParam(0)})
    for (TypeParam beta : {TypeParam(0), TypeParam(1), TypeParam(0.25)})
      for (Size s : {Size{9, 21, 17}, Size{120, 110, 100}})
        for (Layout layout : kLayouts)
          expect_product<TypeParam>(s, Layout::rows, layout, layout, {.alpha = alpha, .beta = beta}, context);
}

TYPED_TEST(Gemm, AnEmptySumIsZero) {
  Context context(1);
  for (TypeParam beta : {TypeParam(0), TypeParam(1), TypeParam(2)})
    expect_product<TypeParam>({3, 4, 0}, Layout::rows, Layout::rows, Layout::rows, {.beta = beta}, context);
  expect_product<TypeParam>({0, 4, 3}, Layout::rows, Layout::rows, Layout::rows, {}, context);
  expect_product<TypeParam>({4, 0, 3}, Layout::rows, Layout::rows, Layout::rows, {}, context);
}

TYPED_TEST(Gemm, DoesNotDependOnTheNumberOfThreads) {
  struct Cut {
    Index M;
    Layout a, b;
  };
  // Many rows, and few against dense columns: these are cut by the number of threads.
  for (const Cut& cut : {Cut{203, Layout::columns, Layout::rows}, Cut{3, Layout::rows, Layout::columns}}) {
    const Index N = 1100, K = 500;
    Rng rng(3);
    const Matrix<TypeParam> a(cut.M, K, cut.a, rng), b(K, N, cut.b, rng);
    std::vector<TypeParam> first;
    for (int threads : {1, 2, 7}) {
      Context context(threads);
      std::vector<TypeParam> c(std::size_t(cut.M * N));
      matmul(a.view, b.view, contiguous(c.data(), {cut.M, N}), context);
      if (first.empty()) first = c;
      EXPECT_EQ(c, first) << threads << " threads, " << cut.M << " rows";
    }
  }
}

TEST(GemmErrors, SayWhatWasExpected) {
  Context context(1);
  std::vector<float> x(100);
  const auto view = [&](Index m, Index n) { return contiguous(x.data(), {m, n}); };
  const auto text = [&](View<float, 2> a, View<float, 2> b, View<float, 2> c) {
    return tests::error_of([&] { matmul(a, b, c, context); });
  };
  EXPECT_EQ(text(view(2, 3), view(4, 5), view(2, 5)), "matmul: expected B with 3 rows, the columns of A, got 4");
  EXPECT_EQ(text(view(2, 3), view(3, 5), view(3, 5)), "matmul: expected C [2, 5], got [3, 5]");
  const std::vector<Bf16> half(100);
  EXPECT_EQ(tests::error_of([&] {
              matmul(view(2, 3), contiguous(half.data(), {4, 5}), view(2, 5), context);
            }),
            "matmul: expected B with 3 rows, the columns of A, got 4");
}

TEST(Peak, IsMeasured) {
  if (quick()) GTEST_SKIP() << "a product of full size takes seconds under a sanitizer";
  Context context(1);
  EXPECT_GT(measure_peak(context), 0.01);
  EXPECT_GT(measure_read(context, 1 << 22), 0.01);
}

}  // namespace
}  // namespace isomer

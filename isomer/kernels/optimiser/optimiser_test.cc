#include "isomer/kernels/optimiser/optimiser.h"

#include <gtest/gtest.h>

#include <cmath>

#include "isomer/kernels/testing.h"

namespace isomer {
namespace {
using testing::Array;
using testing::expect_close;
using testing::Layout;

constexpr Index kLengths[] = {0, 1, 2, 7, 8, 9, 16, 31, 511, 512, 513, 1100};
constexpr double kScale = 0.75;

template <class T>
class OptimiserKernel : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(OptimiserKernel, Types);

template <class T>
struct Arrays {
  Array<T, 1> w, g, m, v;

  Arrays(Index n, Rng& rng)
      : w({n}, Layout::dense, rng), g({n}, Layout::dense, rng), m({n}, Layout::dense, rng), v({n}, Layout::dense, rng) {
    v.for_each([](T& x) { x = std::abs(x); });
  }
  [[nodiscard]] UpdateArrays<T> views() const {
    return {.values = w.view.data, .gradient = g.view.data, .first = m.view.data, .second = v.view.data, .size = w.view.shape[0]};
  }
};

TYPED_TEST(OptimiserKernel, AdamwFollowsItsEquation) {
  using T = TypeParam;
  Rng rng(1);
  const AdamwStep s{.lr = 0.1,
                    .beta1 = 0.9,
                    .beta2 = 0.99,
                    .eps = 1e-4,
                    .decay = 0.2,
                    .gradient_scale = kScale,
                    .correction1 = 0.271,
                    .correction2 = 0.0297};
  for (const Index n : kLengths) {
    const Arrays<T> a(n, rng);
    const std::vector<double> g = a.g.values();
    std::vector<double> w = a.w.values(), m = a.m.values(), v = a.v.values();
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double scaled = kScale * g[i];
      m[i] = s.beta1 * m[i] + (1 - s.beta1) * scaled;
      v[i] = s.beta2 * v[i] + (1 - s.beta2) * scaled * scaled;
      w[i] -= s.lr * (m[i] / s.correction1 / (std::sqrt(v[i] / s.correction2) + s.eps) + s.decay * w[i]);
    }
    adamw<T>(a.views(), s, chosen_isa());
    expect_close<T>(a.w.values(), w, 4, "values");
    expect_close<T>(a.m.values(), m, 4, "first moment");
    expect_close<T>(a.v.values(), v, 4, "second moment");
    EXPECT_TRUE(a.w.intact() && a.m.intact() && a.v.intact());
  }
}

TYPED_TEST(OptimiserKernel, SgdFollowsItsEquation) {
  using T = TypeParam;
  Rng rng(2);
  const SgdStep s{.lr = 0.1, .momentum = 0.9, .decay = 0.2, .gradient_scale = kScale};
  for (const Index n : kLengths) {
    const Arrays<T> a(n, rng);
    const std::vector<double> g = a.g.values();
    std::vector<double> w = a.w.values(), m = a.m.values();
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = s.momentum * m[i] + kScale * g[i];
      w[i] -= s.lr * (m[i] + s.decay * w[i]);
    }
    sgd<T>(a.views(), s, chosen_isa());
    expect_close<T>(a.w.values(), w, 4, "values");
    expect_close<T>(a.m.values(), m, 4, "momentum");
    EXPECT_TRUE(a.w.intact() && a.m.intact());
  }
}

TYPED_TEST(OptimiserKernel, SumsSquares) {
  using T = TypeParam;
  Rng rng(3);
  for (const Index n : kLengths) {
    const Array<T, 1> x({n}, Layout::dense, rng);
    const double want = testing::dot(x.values(), x.values());
    EXPECT_NEAR(sum_of_squares<T>(x.view.data, n, chosen_isa()), want, 16 * double(std::numeric_limits<T>::epsilon()) * want);
  }
}

}  // namespace
}  // namespace isomer

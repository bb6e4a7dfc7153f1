#include "isomer/kernels/elementwise/unary.h"

#include <functional>

#include "isomer/kernels/elementwise/gated.h"
#include "isomer/kernels/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

using testing::Array;
using testing::Layout;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double gelu_erf(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))); }

/// A function, its definition, and the interval it is tested on.
struct Entry {
  const char* name;
  Unary f;
  UnaryOptions options;
  std::function<double(double)> definition;
  double low, high;
};

const std::vector<Entry>& table() {
  static const std::vector<Entry> entries{
      {"identity", Unary::identity, {}, [](double x) { return x; }, -3, 3},
      {"affine", Unary::affine, {.a = -2.5, .b = 0.5}, [](double x) { return -2.5 * x + 0.5; }, -3, 3},
      {"exp", Unary::exp, {}, [](double x) { return std::exp(x); }, -3, 3},
      {"log", Unary::log, {}, [](double x) { return std::log(x); }, 0.1, 9},
      {"sigmoid", Unary::sigmoid, {}, sigmoid, -9, 9},
      {"log_sigmoid", Unary::log_sigmoid, {}, [](double x) { return std::log(sigmoid(x)); }, -9, 9},
      {"silu", Unary::silu, {}, [](double x) { return x * sigmoid(x); }, -6, 6},
      {"tanh", Unary::tanh, {}, [](double x) { return std::tanh(x); }, -4, 4},
      {"softplus", Unary::softplus, {}, [](double x) { return std::log1p(std::exp(x)); }, -9, 9},
      {"relu", Unary::relu, {}, [](double x) { return std::max(x, 0.0); }, -3, 3},
      {"leaky_relu", Unary::leaky_relu, {.a = 0.25}, [](double x) { return x > 0 ? x : 0.25 * x; }, -3, 3},
      {"elu_plus_one", Unary::elu_plus_one, {}, [](double x) { return x > 0 ? x + 1 : std::exp(x); }, -3, 3},
      {"gelu", Unary::gelu, {}, gelu, -4, 4},
      {"softcap", Unary::softcap, {.a = 3}, [](double x) { return 3 * std::tanh(x / 3); }, -9, 9},
      {"one_minus_exp", Unary::one_minus_exp, {}, [](double x) { return -std::expm1(x); }, -3, 1},
      {"sqrt_one_minus_exp2", Unary::sqrt_one_minus_exp2, {}, [](double x) { return std::sqrt(-std::expm1(2 * x)); }, -3, -0.01},
      {"square", Unary::square, {}, [](double x) { return x * x; }, -3, 3},
      {"sqrt", Unary::sqrt, {}, [](double x) { return std::sqrt(x); }, 0.1, 9},
      {"reciprocal", Unary::reciprocal, {}, [](double x) { return 1 / x; }, 0.2, 3},
      {"sin", Unary::sin, {}, [](double x) { return std::sin(x); }, -9, 9},
      {"cos", Unary::cos, {}, [](double x) { return std::cos(x); }, -9, 9},
      {"max_with", Unary::max_with, {.a = 0.7}, [](double x) { return std::max(x, 0.7); }, -3, 3},
      {"gelu_erf", Unary::gelu_erf, {}, gelu_erf, -6, 6},
      {"min_with", Unary::min_with, {.a = 0.7}, [](double x) { return std::min(x, 0.7); }, -3, 3},
  };
  return entries;
}

double slope(const std::function<double(double)>& f, double x) { return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5; }
template <class T>
constexpr double kSlopeMultiple = sizeof(T) == 8 ? testing::kDifferenceMultiple : 16;

constexpr std::array<Index, 4> kShapes[] = {{1, 1, 1, 1}, {2, 3, 2, 5}, {1, 7, 1, 33}, {2, 0, 3, 4}};

template <class T>
class UnaryTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(UnaryTest, Types);

TYPED_TEST(UnaryTest, FollowsTheDefinitionAndItsDifferences) {
  using T = TypeParam;
  Context context(2);
  for (const Entry& e : table())
    for (const auto& shape : kShapes)
      for (Layout layout : testing::kLayouts) {
        Rng rng(3);
        const Array<T, 4> x(shape, layout), y(shape, layout), dy(shape, layout, rng), dx(shape, layout);
        x.for_each([&](T& v) { v = T(e.low + (e.high - e.low) * rng.uniform()); });
        unary<T>(e.f, e.options, x.view, y.view, context);
        unary_vjp<T>(e.f, e.options, x.view, dy.view, dx.view, Accumulate::set, context);
        std::vector<double> want, gradient, twice;
        const auto xs = x.values(), up = dy.values();
        for (std::size_t i = 0; i < xs.size(); ++i) {
          want.push_back(e.definition(xs[i]));
          gradient.push_back(slope(e.definition, xs[i]) * up[i]);
          twice.push_back(2 * gradient.back());
        }
        testing::expect_close<T>(y.values(), want, 6, e.name);
        testing::expect_close<T>(dx.values(), gradient, kSlopeMultiple<T>, e.name);
        unary_vjp<T>(e.f, e.options, x.view, dy.view, dx.view, Accumulate::add, context);
        testing::expect_close<T>(dx.values(), twice, kSlopeMultiple<T>, e.name);
        unary<T>(e.f, e.options, x.view, x.view, context);
        EXPECT_EQ(x.values(), y.values()) << e.name << " in place";
        EXPECT_TRUE(x.intact() && y.intact() && dx.intact());
      }
}

TYPED_TEST(UnaryTest, KeepsNanAndStaysFiniteFarOut) {
  using T = TypeParam;
  Context context(1);
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const Entry& e : table()) {
    const Array<T, 4> x({1, 1, 1, 1}), y({1, 1, 1, 1});
    x.view.data[0] = nan;
    unary<T>(e.f, e.options, x.view, y.view, context);
    EXPECT_TRUE(std::isnan(y.view.data[0])) << e.name;
  }
  Array<T, 4> x({1, 1, 1, 2}), y({1, 1, 1, 2}), dx({1, 1, 1, 2}), one({1, 1, 1, 2});
  x.set({-1e30, 1e30});
  one.set({1, 1});
  struct Limit {
    Unary f;
    std::vector<double> value, slope;
  };
  const double far = double(x.view.data[1]);
  const Limit limits[] = {{Unary::sigmoid, {0, 1}, {0, 0}},        {Unary::log_sigmoid, {-far, 0}, {1, 0}},
                          {Unary::silu, {0, far}, {0, 1}},         {Unary::tanh, {-1, 1}, {0, 0}},
                          {Unary::softplus, {0, far}, {0, 1}},     {Unary::gelu, {0, far}, {0, 1}},
                          {Unary::elu_plus_one, {0, far}, {0, 1}}, {Unary::gelu_erf, {0, far}, {0, 1}}};
  for (const Limit& limit : limits) {
    unary<T>(limit.f, {}, x.view, y.view, context);
    unary_vjp<T>(limit.f, {}, x.view, one.view, dx.view, Accumulate::set, context);
    EXPECT_EQ(y.values(), limit.value) << int(limit.f);
    EXPECT_EQ(dx.values(), limit.slope) << int(limit.f);
  }
}

TYPED_TEST(UnaryTest, KeepsTheTailOfTheExactGelu) {
  using T = TypeParam;
  Context context(1);
  Array<T, 4> x({1, 1, 1, 1}), y({1, 1, 1, 1});
  for (double at : {-0.5, -3.0, -5.0, -8.0, -12.0}) {
    x.set({at});
    unary<T>(Unary::gelu_erf, {}, x.view, y.view, context);
    // The rounding of x² / 2 is that of the exponent.
    testing::expect_close<T>(y.values(), {gelu_erf(at)}, 8 + at * at / 2, "gelu_erf at " + std::to_string(at));
  }
}

TYPED_TEST(UnaryTest, BoundsTheSlopeOfTheRoot) {
  using T = TypeParam;
  Context context(1);
  Array<T, 4> x({1, 1, 1, 2}), y({1, 1, 1, 2}), dx({1, 1, 1, 2}), one({1, 1, 1, 2});
  x.set({0, -1e-9});
  one.set({1, 1});
  unary<T>(Unary::sqrt_one_minus_exp2, {}, x.view, y.view, context);
  unary_vjp<T>(Unary::sqrt_one_minus_exp2, {}, x.view, one.view, dx.view, Accumulate::set, context);
  testing::expect_close<T>(y.values(), {0, std::sqrt(-std::expm1(2 * double(x.view.data[1])))}, 8, "no cancellation");
  testing::expect_close<T>(dx.values(), {-2000, -2000 * std::exp(-2e-9)}, 4, "the bound");
}

double gate_of(Unary f, double g) { return f == Unary::sigmoid ? sigmoid(g) : f == Unary::silu ? g * sigmoid(g) : gelu(g); }

TYPED_TEST(UnaryTest, GatesFollowTheDefinitionAndItsDifferences) {
  using T = TypeParam;
  Context context(2);
  for (Unary f : {Unary::sigmoid, Unary::silu, Unary::gelu})
    for (const auto& shape : kShapes)
      for (Layout layout : testing::kLayouts) {
        Rng rng(4);
        const Array<T, 4> g(shape, layout, rng), x(shape, layout, rng), dy(shape, layout, rng);
        const Array<T, 4> y(shape, layout), dg(shape, layout), dx(shape, layout, rng);
        const auto gs = g.values(), xs = x.values(), up = dy.values(), before = dx.values();
        std::vector<double> want, want_g, want_x;
        for (std::size_t i = 0; i < gs.size(); ++i) {
          want.push_back(gate_of(f, gs[i]) * xs[i]);
          want_g.push_back(slope([&](double v) { return gate_of(f, v); }, gs[i]) * xs[i] * up[i]);
          want_x.push_back(gate_of(f, gs[i]) * up[i] + before[i]);
        }
        gated<T>(f, g.view, x.view, y.view, context);
        gated_vjp<T>(f, g.view, x.view, dy.view, {.dx = dx.view, .accumulate_x = Accumulate::add}, context);
        gated_vjp<T>(f, g.view, x.view, dy.view, {.dg = dg.view}, context);
        testing::expect_close<T>(y.values(), want, 6, "y");
        testing::expect_close<T>(dg.values(), want_g, kSlopeMultiple<T>, "dg");
        testing::expect_close<T>(dx.values(), want_x, 6, "dx");
        EXPECT_TRUE(y.intact() && dg.intact() && dx.intact());
      }
}

TYPED_TEST(UnaryTest, DoesNotDependOnTheNumberOfThreads) {
  using T = TypeParam;
  std::vector<double> first;
  for (int threads : {1, 2, 7}) {
    Context context(threads);
    Rng rng(5);
    const std::array<Index, 4> shape{2, 500, 3, 19};
    const Array<T, 4> x(shape, Layout::gaps, rng), dy(shape, Layout::strided, rng), y(shape), dg(shape), dx(shape, Layout::gaps);
    unary<T>(Unary::gelu, {}, x.view, y.view, context);
    gated_vjp<T>(Unary::silu, x.view, y.view, dy.view, {.dg = dg.view, .dx = dx.view}, context);
    std::vector<double> all = dg.values();
    for (double v : dx.values()) all.push_back(v);
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << threads << " threads";
  }
}

TEST(UnaryErrors, SayWhatWasExpected) {
  Context context(1);
  using tests::error_of;
  const Array<float, 4> x({1, 2, 3, 4}), narrow({1, 2, 3, 3});
  EXPECT_EQ(error_of([&] { unary<float>(Unary::exp, {}, x.view, narrow.view, context); }),
            "unary: expected y of the shape of x, [1, 2, 3, 4], got [1, 2, 3, 3]");
  EXPECT_EQ(error_of([&] { unary<float>(Unary::softcap, {.a = 0}, x.view, x.view, context); }),
            "unary: expected a cap a > 0, got 0");
  EXPECT_EQ(error_of([&] { unary_vjp<float>(Unary::exp, {}, x.view, narrow.view, x.view, Accumulate::set, context); }),
            "unary_vjp: expected dy of the shape of x, [1, 2, 3, 4], got [1, 2, 3, 3]");
  EXPECT_EQ(error_of([&] { unary_vjp<float>(Unary::exp, {}, x.view, x.view, narrow.view, Accumulate::set, context); }),
            "unary_vjp: expected dx of the shape of x, [1, 2, 3, 4], got [1, 2, 3, 3]");
  EXPECT_EQ(error_of([&] { gated<float>(Unary::silu, narrow.view, x.view, x.view, context); }),
            "gated: expected g of the shape of x, [1, 2, 3, 4], got [1, 2, 3, 3]");
  EXPECT_EQ(error_of([&] { gated<float>(Unary::exp, x.view, x.view, x.view, context); }),
            "gated: expected f = sigmoid, silu or gelu, got function 2");
  EXPECT_EQ(error_of([&] { gated_vjp<float>(Unary::silu, x.view, x.view, x.view, {.dg = narrow.view}, context); }),
            "gated_vjp: expected dg of the shape of x, [1, 2, 3, 4], got [1, 2, 3, 3]");
}

}  // namespace
}  // namespace isomer

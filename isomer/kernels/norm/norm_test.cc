#include "isomer/kernels/norm/norm.h"

#include "isomer/kernels/rows.h"
#include "isomer/kernels/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

using testing::Array;
using testing::Layout;

constexpr Norm kNorms[] = {Norm::rms, Norm::layer, Norm::l2};
// A large eps for L2, so that its linear branch is met; the reference is smooth away from the edge.
NormOptions options_of(Norm kind) { return {.kind = kind, .eps = kind == Norm::l2 ? 1.5 : 1e-3}; }

/// The definition, in double; w and b have one row or H.
std::vector<double> reference(const std::vector<double>& x, const std::vector<double>& w, const std::vector<double>& b, Index D,
                              NormOptions options) {
  std::vector<double> y(x.size());
  for (std::size_t row = 0; row * std::size_t(D) < x.size(); ++row) {
    const double* xr = x.data() + row * std::size_t(D);
    double mean = 0, squares = 0;
    if (options.kind == Norm::layer)
      for (Index d = 0; d < D; ++d) mean += xr[d] / double(D);
    for (Index d = 0; d < D; ++d) squares += (xr[d] - mean) * (xr[d] - mean);
    const double size =
        options.kind == Norm::l2 ? std::max(std::sqrt(squares), options.eps) : std::sqrt(squares / double(D) + options.eps);
    for (Index d = 0; d < D; ++d) {
      const std::size_t i = row * std::size_t(D) + std::size_t(d);
      y[i] = (xr[d] - mean) / size * (w.empty() ? 1 : w[i % w.size()]) + (b.empty() ? 0 : b[i % b.size()]);
    }
  }
  return y;
}

template <class T>
struct Case {
  Rng rng{11};
  Array<T, 4> x, dy, y, dx;
  Array<T, 2> w, b, dw, db;
  NormOptions options;

  Case(const std::array<Index, 4>& shape, Index heads, Norm kind, Layout layout)
      : x(shape, layout, rng),
        dy(shape, layout, rng),
        y(shape, layout),
        dx(shape, layout),
        w({heads, shape[3]}, layout, rng),
        b({heads, shape[3]}, layout, rng),
        dw({heads, shape[3]}, layout),
        db({heads, shape[3]}, layout),
        options(options_of(kind)) {}
  [[nodiscard]] NormParameters<T> parameters() const { return {.weight = w.view, .bias = b.view}; }
  void forward(Context& context) { norm<T>(x.view, parameters(), options, y.view, context); }
  void backward(Context& context) {
    norm_vjp<T>(x.view, dy.view, parameters(), options, {.dx = dx.view, .dweight = dw.view, .dbias = db.view}, context);
  }
};

constexpr std::array<Index, 4> kShapes[] = {{1, 1, 1, 1}, {2, 3, 2, 5}, {1, 70, 2, 8}, {2, 2, 3, 33}};

template <class T>
class NormTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(NormTest, Types);

TYPED_TEST(NormTest, FollowsTheDefinition) {
  Context context(2);
  for (const auto& shape : kShapes)
    for (Norm kind : kNorms)
      for (Layout layout : testing::kLayouts)
        for (Index heads : {Index(1), shape[2]}) {
          Case<TypeParam> c(shape, heads, kind, layout);
          c.forward(context);
          const auto want = reference(c.x.values(), c.w.values(), c.b.values(), shape[3], c.options);
          testing::expect_close<TypeParam>(c.y.values(), want, 8, "y");
          EXPECT_TRUE(c.y.intact());
        }
}

TYPED_TEST(NormTest, AddsToAGradient) {
  Context context(2);
  for (Norm kind : kNorms)
    for (Layout layout : testing::kLayouts) {
      Case<TypeParam> c({2, 3, 2, 33}, 1, kind, layout);
      c.backward(context);
      const auto once = c.dx.values();
      norm_vjp<TypeParam>(c.x.view, c.dy.view, c.parameters(), c.options, {.dx = c.dx.view, .accumulate_x = Accumulate::add},
                          context);
      const auto twice = c.dx.values();
      for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(twice[i], TypeParam(2) * once[i]);
    }
}

TYPED_TEST(NormTest, GradientsAreDifferencesOfTheDefinition) {
  Context context(2);
  for (const auto& shape : kShapes)
    for (Norm kind : kNorms)
      for (Layout layout : testing::kLayouts) {
        Case<TypeParam> c(shape, shape[2], kind, layout);
        c.backward(context);
        auto x = c.x.values(), w = c.w.values(), b = c.b.values();
        const auto dy = c.dy.values();
        const auto loss = [&] { return testing::dot(dy, reference(x, w, b, shape[3], c.options)); };
        // D = 1: the layer norm of one number is constant, and nothing is left to compare.
        const double multiple = sizeof(TypeParam) == 8 ? testing::kDifferenceMultiple : 40;
        if (shape[3] > 1) testing::expect_close<TypeParam>(c.dx.values(), testing::differences(x, loss), multiple, "dx");
        if (shape[3] > 1) testing::expect_close<TypeParam>(c.dw.values(), testing::differences(w, loss), multiple, "dweight");
        testing::expect_close<TypeParam>(c.db.values(), testing::differences(b, loss), multiple, "dbias");
        EXPECT_TRUE(c.dx.intact() && c.dw.intact() && c.db.intact());
      }
}

TYPED_TEST(NormTest, WorksInPlaceAndWithoutParameters) {
  Context context(1);
  for (Norm kind : kNorms) {
    Case<TypeParam> c({1, 3, 2, 7}, 1, kind, Layout::strided);
    const auto want = reference(c.x.values(), {}, {}, 7, c.options);
    norm<TypeParam>(c.x.view, {}, c.options, c.x.view, context);
    testing::expect_close<TypeParam>(c.x.values(), want, 8, "y");
  }
}

TYPED_TEST(NormTest, DoesNotDependOnTheNumberOfThreads) {
  for (Norm kind : kNorms) {
    std::vector<double> first;
    for (int threads : {1, 2, 7}) {
      Context context(threads);
      Case<TypeParam> c({3, 90, 2, 19}, 2, kind, Layout::gaps);
      c.forward(context);
      c.backward(context);
      std::vector<double> all = c.y.values();
      for (const auto& part : {c.dx.values(), c.dw.values(), c.db.values()}) all.insert(all.end(), part.begin(), part.end());
      if (first.empty()) first = all;
      EXPECT_EQ(all, first) << threads << " threads";
    }
  }
}

TEST(NormErrors, SayWhatWasExpected) {
  Context context(1);
  using tests::error_of;
  Case<float> c({1, 3, 2, 4}, 1, Norm::rms, Layout::dense);
  const Array<float, 4> narrow({1, 3, 2, 3});
  const Array<float, 2> three({3, 4}), two({2, 4});
  EXPECT_EQ(error_of([&] { norm<float>(c.x.view, {}, {}, narrow.view, context); }),
            "norm: expected y of the shape of x, [1, 3, 2, 4], got [1, 3, 2, 3]");
  EXPECT_EQ(error_of([&] { norm<float>(c.x.view, {.weight = three.view}, {}, c.y.view, context); }),
            "norm: expected weight [1 or 2, 4], got [3, 4]");
  EXPECT_EQ(error_of([&] { norm<float>(c.x.view, {.weight = c.w.view, .bias = two.view}, {}, c.y.view, context); }),
            "norm: expected bias [1, 4], got [2, 4]");
  EXPECT_EQ(error_of([&] { norm<float>(c.x.view, {}, {.eps = -1}, c.y.view, context); }), "norm: expected eps >= 0, got -1");
  EXPECT_EQ(error_of([&] { norm_vjp<float>(c.x.view, narrow.view, {}, {}, {}, context); }),
            "norm_vjp: expected dy of the shape of x, [1, 3, 2, 4], got [1, 3, 2, 3]");
}

TEST(Norm, TakesNoRows) {
  Context context(1);
  Case<float> c({2, 0, 3, 4}, 1, Norm::layer, Layout::dense);
  c.forward(context);
  c.backward(context);
  EXPECT_EQ(c.dw.values(), std::vector<double>(4, 0.0));
}

}  // namespace
}  // namespace isomer

#include "isomer/kernels/conv/conv.h"

#include <cmath>

#include "isomer/kernels/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

using testing::Array;
using testing::Layout;
using Offsets = std::vector<std::int64_t>;

struct Shape {
  Index B, T, C, W;
  Offsets offsets;
  bool silu = false;
  [[nodiscard]] Index sequences() const { return offsets.empty() ? B : Index(offsets.size()) - 1; }
};
const Shape kShapes[] = {{1, 1, 1, 1, {}},
                         {2, 5, 3, 4, {}},
                         {1, 2, 9, 4, {}},
                         {3, 0, 2, 3, {}},
                         {1, 140, 5, 3, {}},
                         {2, 7, 17, 2, {}},
                         {1, 12, 4, 4, {0, 5, 5, 6, 12}},
                         {2, 5, 3, 4, {}, true},
                         {1, 140, 5, 3, {}, true},
                         {1, 12, 17, 4, {0, 5, 5, 6, 12}, true}};

struct Values {
  std::vector<double> x, weight, bias, state;
};
struct Results {
  std::vector<double> y, state;
};

/// The definition, in double, on dense arrays.
Results reference(const Shape& s, const Values& v) {
  Results out{std::vector<double>(v.x.size()), std::vector<double>(v.state.size())};
  for (Index n = 0; n < s.sequences(); ++n) {
    const Index first = s.offsets.empty() ? n * s.T : Index(s.offsets[std::size_t(n)]);
    const Index length = s.offsets.empty() ? s.T : Index(s.offsets[std::size_t(n) + 1]) - first;
    const auto token = [&](Index t, Index c) {
      return t >= 0 ? v.x[std::size_t((first + t) * s.C + c)] : v.state[std::size_t(((n + 1) * (s.W - 1) + t) * s.C + c)];
    };
    for (Index c = 0; c < s.C; ++c) {
      for (Index t = 0; t < length; ++t) {
        double sum = v.bias[std::size_t(c)];
        for (Index j = 0; j < s.W; ++j) sum += v.weight[std::size_t(c * s.W + j)] * token(t - s.W + 1 + j, c);
        out.y[std::size_t((first + t) * s.C + c)] = s.silu ? sum / (1 + std::exp(-sum)) : sum;
      }
      for (Index i = 0; i < s.W - 1; ++i) out.state[std::size_t((n * (s.W - 1) + i) * s.C + c)] = token(length - s.W + 1 + i, c);
    }
  }
  return out;
}

template <class T>
struct Case {
  Shape shape;
  Rng rng{21};
  Array<T, 3> x, dy, y, dx, state, dfinal, final_state, dstate;
  Array<T, 2> w, b, dw, db;

  Case(const Shape& s, Layout layout)
      : shape(s),
        x({s.B, s.T, s.C}, layout, rng),
        dy({s.B, s.T, s.C}, layout, rng),
        y({s.B, s.T, s.C}, layout),
        dx({s.B, s.T, s.C}, layout),
        state({s.sequences(), s.W - 1, s.C}, layout, rng),
        dfinal({s.sequences(), s.W - 1, s.C}, layout, rng),
        final_state({s.sequences(), s.W - 1, s.C}, layout),
        dstate({s.sequences(), s.W - 1, s.C}, layout),
        w({s.C, s.W}, layout, rng),
        b({1, s.C}, layout, rng),
        dw({s.C, s.W}, layout),
        db({1, s.C}, layout) {}
  [[nodiscard]] ConvInputs<T> inputs() const { return {x.view, w.view, b.view, state.view, shape.silu}; }
  void forward(Context& context) { conv<T>(inputs(), shape.offsets, {.y = y.view, .state = final_state.view}, context); }
  void backward(Context& context) {
    conv_vjp<T>(inputs(), shape.offsets, {.dy = dy.view, .dstate = dfinal.view},
                {.dx = dx.view, .dweight = dw.view, .dbias = db.view, .dstate = dstate.view}, context);
  }
  [[nodiscard]] Values values() const { return {x.values(), w.values(), b.values(), state.values()}; }
};

template <class T>
class ConvTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ConvTest, Types);

TYPED_TEST(ConvTest, FollowsTheDefinition) {
  Context context(2);
  for (const Shape& shape : kShapes)
    for (Layout layout : testing::kLayouts) {
      Case<TypeParam> c(shape, layout);
      c.forward(context);
      const Results want = reference(shape, c.values());
      testing::expect_close<TypeParam>(c.y.values(), want.y, 8, "y");
      testing::expect_close<TypeParam>(c.final_state.values(), want.state, 0, "final state");
      EXPECT_TRUE(c.y.intact() && c.final_state.intact());
    }
}

TYPED_TEST(ConvTest, GradientsAreDifferencesOfTheDefinition) {
  Context context(2);
  for (const Shape& shape : kShapes)
    for (Layout layout : testing::kLayouts) {
      Case<TypeParam> c(shape, layout);
      c.backward(context);
      Values v = c.values();
      const auto dy = c.dy.values(), dfinal = c.dfinal.values();
      const auto loss = [&] {
        const Results r = reference(shape, v);
        return testing::dot(dy, r.y) + testing::dot(dfinal, r.state);
      };
      const double multiple = sizeof(TypeParam) == 8 ? testing::kDifferenceMultiple : 32;
      testing::expect_close<TypeParam>(c.dx.values(), testing::differences(v.x, loss), multiple, "dx");
      testing::expect_close<TypeParam>(c.dw.values(), testing::differences(v.weight, loss), multiple, "dweight");
      testing::expect_close<TypeParam>(c.db.values(), testing::differences(v.bias, loss), multiple, "dbias");
      testing::expect_close<TypeParam>(c.dstate.values(), testing::differences(v.state, loss), multiple, "dstate");
      EXPECT_TRUE(c.dx.intact() && c.dw.intact() && c.db.intact() && c.dstate.intact());
    }
}

TYPED_TEST(ConvTest, CutsAnywhereWithTheStateCarried) {
  Context context(1);
  Case<TypeParam> whole({1, 9, 5, 4, {}, true}, Layout::dense);
  whole.forward(context);
  for (Index cut = 0; cut <= 9; ++cut) {
    const Array<TypeParam, 3> y({1, 9, 5}), middle({1, 3, 5}), last({1, 3, 5});
    ConvInputs<TypeParam> in = whole.inputs();
    const View<const TypeParam, 3> x = in.x;
    in.x = slice(x, 1, 0, cut);
    conv<TypeParam>(in, {}, {.y = slice(y.view, 1, 0, cut), .state = middle.view}, context);
    in.x = slice(x, 1, cut, 9 - cut);
    in.state = middle.view;
    conv<TypeParam>(in, {}, {.y = slice(y.view, 1, cut, 9 - cut), .state = last.view}, context);
    EXPECT_EQ(y.values(), whole.y.values()) << "cut at " << cut;
    EXPECT_EQ(last.values(), whole.final_state.values()) << "cut at " << cut;
  }
}

TYPED_TEST(ConvTest, AnAbsentStateIsZero) {
  Context context(1);
  Case<TypeParam> c({2, 6, 3, 3, {}}, Layout::gaps);
  c.state.for_each([](TypeParam& x) { x = 0; });
  c.forward(context);
  const auto with_zeros = c.y.values();
  conv<TypeParam>({.x = c.x.view, .weight = c.w.view, .bias = c.b.view}, {}, {.y = c.y.view}, context);
  EXPECT_EQ(c.y.values(), with_zeros);
}

TYPED_TEST(ConvTest, DoesNotDependOnTheNumberOfThreads) {
  std::vector<double> first;
  for (int threads : {1, 2, 7}) {
    Context context(threads);
    Case<TypeParam> c({2, 400, 7, 4, {}, true}, Layout::gaps);
    c.forward(context);
    c.backward(context);
    std::vector<double> all = c.y.values();
    for (const auto& part : {c.dx.values(), c.dw.values(), c.db.values(), c.dstate.values()})
      all.insert(all.end(), part.begin(), part.end());
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << threads << " threads";
  }
}

TEST(ConvErrors, SayWhatWasExpected) {
  Context context(1);
  using tests::error_of;
  Case<float> c({1, 6, 3, 4, {}}, Layout::dense), other({1, 5, 3, 4, {}}, Layout::dense);
  const auto run = [&](ConvInputs<float> in, const Offsets& offsets, View<float, 3> y) {
    return error_of([&] { conv<float>(in, offsets, {.y = y}, context); });
  };
  ConvInputs<float> in = c.inputs();
  EXPECT_EQ(run(in, {}, other.y.view), "conv: expected y [1, 6, 3], got [1, 5, 3]");
  EXPECT_EQ(run(in, {0, 4}, c.y.view), "conv: expected offsets from 0 to 6, got from 0 to 4");
  EXPECT_EQ(run(in, {0, 4, 3, 6}, c.y.view), "conv: expected offsets that do not fall, got 3 after 4");
  EXPECT_EQ(run(in, {0, 4, 6}, c.y.view), "conv: expected state [2, 3, 3], got [1, 3, 3]");
  in.weight = {c.w.view.data, {2, 4}, {4, 1}};
  EXPECT_EQ(run(in, {}, c.y.view), "conv: expected weight [3, at least 1], got [2, 4]");
  in = c.inputs();
  in.bias = {c.b.view.data, {1, 2}, {2, 1}};
  EXPECT_EQ(run(in, {}, c.y.view), "conv: expected bias [1, 3], got [1, 2]");
  Case<float> two({2, 6, 3, 4, {}}, Layout::dense);
  EXPECT_EQ(run(two.inputs(), {0, 6}, two.y.view), "conv: expected B = 1 with offsets, got 2");
  EXPECT_EQ(error_of([&] { conv_vjp<float>(c.inputs(), {}, {.dy = other.dy.view}, {}, context); }),
            "conv_vjp: expected dy [1, 6, 3], got [1, 5, 3]");
  EXPECT_EQ(error_of([&] { conv_vjp<float>(c.inputs(), {}, {.dy = c.dy.view}, {.dweight = c.db.view}, context); }),
            "conv_vjp: expected dweight [3, 4], got [1, 3]");
}

}  // namespace
}  // namespace isomer

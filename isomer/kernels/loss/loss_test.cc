#include "isomer/kernels/loss/loss.h"

#include "isomer/kernels/gemm/gemm.h"
#include "isomer/kernels/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

using testing::Array;
using testing::Layout;
using Numbers = std::vector<double>;

/// Labels below V, about one in four ignored, in a view with gaps.
struct LabelArray {
  std::vector<std::int64_t> storage;
  Labels view;

  LabelArray(Index N, Index V, Rng& rng) : storage(std::size_t(2 * N + 1), V) {
    for (Index n = 0; n < N; ++n)
      storage[std::size_t(2 * n)] = rng.below(4) == 0 ? -100 : std::int64_t(rng.below(std::uint64_t(V)));
    view = {storage.data(), {N}, {2}};
  }
};

/// The definition in double, with the gradient at the logits.
struct Reference {
  LossResult result;
  Numbers dlogits;

  Reference(const Numbers& z, Index V, Labels labels) : dlogits(z.size()) {
    const auto width = std::size_t(V);
    long double mean = 0;
    for (Index n = 0; n < labels.shape[0]; ++n) result.count += labels(n) >= 0 ? 1 : 0;
    for (std::size_t n = 0; n < std::size_t(labels.shape[0]); ++n) {
      if (labels(Index(n)) < 0) continue;
      const double *row = z.data() + n * width, most = *std::max_element(row, row + width);
      const auto label = std::size_t(labels(Index(n)));
      long double sum = 0;
      for (std::size_t v = 0; v < width; ++v) sum += std::exp(row[v] - most);
      mean += (most + std::log(sum) - row[label]) / (long double)(result.count);
      result.correct += std::max_element(row, row + width) - row == Index(label) ? 1 : 0;
      for (std::size_t v = 0; v < width; ++v)
        dlogits[n * width + v] = (std::exp(row[v] - most) / double(sum) - (v == label ? 1 : 0)) / double(result.count);
    }
    result.mean = double(mean);
  }
};

void expect_result(const LossResult& got, const LossResult& want, double tolerance) {
  EXPECT_NEAR(got.mean, want.mean, tolerance * std::max(1.0, want.mean));
  EXPECT_EQ(got.count, want.count);
  EXPECT_EQ(got.correct, want.correct);
}

template <class T>
constexpr double kEpsilon = double(std::numeric_limits<T>::epsilon());

// A logit of 10 is rounded by ten epsilon, and e^z makes a relative error of that.
constexpr double kGradientMultiple = 64;

/// x [N, D], weight [V, D], bias [V], labels [N], and where the gradients go.
template <class T>
struct Case {
  Rng rng{7};
  Index N, V, D;
  Array<T, 2> x, weight, dx, dweight;
  Array<T, 1> bias, dbias;
  LabelArray labels;
  double softcap;

  Case(Index rows, Index vocabulary, Index width, double cap, Layout layout)
      : N(rows),
        V(vocabulary),
        D(width),
        x({N, D}, layout, rng),
        weight({V, D}, layout, rng),
        dx({N, D}, layout, rng),
        dweight({V, D}, layout, rng),
        bias({V}, layout, rng),
        dbias({V}, layout, rng),
        labels(N, V, rng),
        softcap(cap) {}
  [[nodiscard]] ProjectedLoss<T> in() const {
    return {.x = x.view, .weight = weight.view, .bias = bias.view, .labels = labels.view, .softcap = softcap};
  }
  [[nodiscard]] ProjectedLossGradients<T> out(Accumulate mode, double scale) const {
    return {.dx = dx.view,
            .dweight = dweight.view,
            .dbias = dbias.view,
            .accumulate_x = mode,
            .accumulate_weight = mode,
            .accumulate_bias = mode,
            .scale = scale};
  }
  [[nodiscard]] Numbers gradients() const {
    Numbers all = dx.values();
    for (const auto& part : {dweight.values(), dbias.values()}) all.insert(all.end(), part.begin(), part.end());
    return all;
  }

  /// The same in double by plain loops: the result, and the gradients as gradients() has them.
  [[nodiscard]] std::pair<LossResult, Numbers> reference(double scale) const {
    const auto xs = x.values(), ws = weight.values(), bs = bias.values();
    const auto n = std::size_t(N), v = std::size_t(V), d = std::size_t(D);
    Numbers z(n * v), slope(n * v, 1.0), gx(n * d), gw(v * d), gb(v);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < v; ++j) {
        double& s = z[i * v + j];
        s = bs[j];
        for (std::size_t k = 0; k < d; ++k) s += xs[i * d + k] * ws[j * d + k];
        if (softcap == 0) continue;
        slope[i * v + j] = 1 - std::pow(std::tanh(s / softcap), 2);
        s = softcap * std::tanh(s / softcap);
      }
    const Reference loss(z, V, labels.view);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < v; ++j) {
        const double g = scale * loss.dlogits[i * v + j] * slope[i * v + j];
        gb[j] += g;
        for (std::size_t k = 0; k < d; ++k) {
          gx[i * d + k] += g * ws[j * d + k];
          gw[j * d + k] += g * xs[i * d + k];
        }
      }
    for (const auto& part : {gw, gb}) gx.insert(gx.end(), part.begin(), part.end());
    return {loss.result, gx};
  }
};

template <class T>
class LossTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(LossTest, Types);

TYPED_TEST(LossTest, ProjectionFollowsPlainLoops) {
  using T = TypeParam;
  Context context(2);
  struct Size {
    Index N, V, D;
  };
  // The third has more rows than a block.
  for (const Size& s : {Size{1, 1, 1}, Size{13, 9, 5}, Size{6000, 3, 2}, Size{5, 700, 17}})
    for (double softcap : {0.0, 3.0})
      for (Layout layout : testing::kLayouts) {
        Case<T> c(s.N, s.V, s.D, softcap, layout);
        const auto [want, gradients] = c.reference(2.5);
        Numbers added = c.gradients();
        for (std::size_t i = 0; i < added.size(); ++i) added[i] += gradients[i];
        expect_result(projected_cross_entropy<T>(c.in(), c.out(Accumulate::add, 2.5), context), want, 16 * kEpsilon<T>);
        testing::expect_close<T>(c.gradients(), added, kGradientMultiple, "added");
        expect_result(projected_cross_entropy<T>(c.in(), c.out(Accumulate::set, 2.5), context), want, 16 * kEpsilon<T>);
        testing::expect_close<T>(c.gradients(), gradients, kGradientMultiple, "set");
        expect_result(projected_cross_entropy<T>(c.in(), {}, context), want, 16 * kEpsilon<T>);
        EXPECT_TRUE(c.dx.intact() && c.dweight.intact() && c.dbias.intact());
      }
}

TYPED_TEST(LossTest, LogitsOfALargeVocabularyAreComputedTwice) {
  using T = TypeParam;
  Context context(2);
  Case<T> c(360, 16500, 2, 0, Layout::dense);
  const auto [want, gradients] = c.reference(1);
  EXPECT_GT(want.count, 256) << "expected more than a block";
  expect_result(projected_cross_entropy<T>(c.in(), c.out(Accumulate::set, 1), context), want, 16 * kEpsilon<T>);
  // A product adds up V terms in T: good to √V epsilon.
  testing::expect_close<T>(c.gradients(), gradients, std::sqrt(double(c.V)), "set");
}

TEST(Loss, ProjectionGradientsAreDifferences) {
  Context context(1);
  for (double softcap : {0.0, 2.0}) {
    Case<double> c(6, 5, 3, softcap, Layout::dense);
    projected_cross_entropy<double>(c.in(), c.out(Accumulate::set, 1), context);
    const Numbers got = c.gradients();
    Numbers want;
    for (Array<double, 2>* a : {&c.x, &c.weight}) {
      Numbers values = a->values();
      const auto loss = [&] {
        a->set(values);
        return projected_cross_entropy<double>(c.in(), {}, context).mean;
      };
      for (double g : testing::differences(values, loss)) want.push_back(g);
      a->set(values);
    }
    Numbers values = c.bias.values();
    const auto loss = [&] {
      c.bias.set(values);
      return projected_cross_entropy<double>(c.in(), {}, context).mean;
    };
    for (double g : testing::differences(values, loss)) want.push_back(g);
    testing::expect_close<double>(got, want, testing::kDifferenceMultiple, "dx, dweight, dbias");
  }
}

TYPED_TEST(LossTest, IgnoresRowsWithoutALabel) {
  using T = TypeParam;
  Context context(1);
  Case<T> c(4, 3, 2, 0, Layout::gaps);
  std::fill(c.labels.storage.begin(), c.labels.storage.end(), -100);
  const Numbers before = c.gradients();
  expect_result(projected_cross_entropy<T>(c.in(), c.out(Accumulate::add, 1), context), {}, 0);
  EXPECT_EQ(c.gradients(), before);
  expect_result(projected_cross_entropy<T>(c.in(), c.out(Accumulate::set, 1), context), {}, 0);
  EXPECT_EQ(c.gradients(), Numbers(before.size(), 0.0));
  Case<T> none(0, 3, 2, 0, Layout::dense);
  expect_result(projected_cross_entropy<T>(none.in(), none.out(Accumulate::set, 1), context), {}, 0);
}

TYPED_TEST(LossTest, CrossEntropyFollowsTheDefinition) {
  using T = TypeParam;
  Context context(2);
  for (Index V : {1, 3, 8, 700})
    for (Layout layout : testing::kLayouts) {
      Rng rng(3);
      const Array<T, 2> z({50, V}, layout, rng), dz({50, V}, layout);
      const LabelArray labels(50, V, rng);
      const Reference want(z.values(), V, labels.view);
      expect_result(cross_entropy<T>(z.view, labels.view, {}, 1, context), want.result, 8 * kEpsilon<T>);
      expect_result(cross_entropy<T>(z.view, labels.view, dz.view, 1, context), want.result, 8 * kEpsilon<T>);
      if (V > 1) testing::expect_close<T>(dz.values(), want.dlogits, 16, "dlogits");
      EXPECT_TRUE(dz.intact());
      cross_entropy<T>(z.view, labels.view, z.view, 1, context);
      EXPECT_EQ(z.values(), dz.values());
    }
}

TYPED_TEST(LossTest, ExtremeLogits) {
  using T = TypeParam;
  Context context(1);
  Array<T, 2> z({4, 9}), dz({4, 9});
  const std::int64_t numbers[] = {2, 3, 8, 4};
  Numbers values(36, -1e30);
  values[2] = 1e30;                                    // right beyond doubt
  values[9] = 50, values[9 + 3] = 0;                   // wrong beyond doubt
  for (int v = 0; v < 9; ++v) values[18 + v] = -2000;  // undecided far below 0
  for (int v = 0; v < 9; ++v) values[27 + v] = v == 6 ? std::nan("") : 0;
  z.set(values);
  const auto one = [&](Index n) {
    return cross_entropy<T>(slice(View<const T, 2>(z.view), 0, n, 1), {numbers + n, {1}, {1}}, slice(dz.view, 0, n, 1), 1,
                            context);
  };
  expect_result(one(0), {0, 1, 1}, 0);
  expect_result(one(1), {50, 1, 0}, kEpsilon<T>);
  expect_result(one(2), {std::log(9.0), 1, 0}, 4 * kEpsilon<T>);
  const LossResult nan = one(3);
  EXPECT_TRUE(std::isnan(nan.mean));
  Numbers want(27, 0.0);
  want[9] = 1, want[12] = -1;
  for (std::size_t v = 0; v < 9; ++v) want[18 + v] = 1.0 / 9 - (v == 8 ? 1 : 0);
  Numbers got = dz.values();
  got.resize(27);
  // The logits of −2000 are kept to 1e-4 in float, and their logarithms' sum with them.
  testing::expect_close<T>(got, want, 2048, "dlogits");
}

TYPED_TEST(LossTest, MeanSquaredError) {
  using T = TypeParam;
  Context context(2);
  for (const auto& shape : {std::array<Index, 4>{1, 1, 1, 1}, {2, 3, 2, 5}, {1, 9, 1, 700}, {2, 0, 3, 4}})
    for (Layout layout : testing::kLayouts) {
      Rng rng(4);
      const Array<T, 4> x(shape, layout, rng), target(shape, layout, rng), dx(shape, layout);
      const auto xs = x.values(), ts = target.values();
      double want = 0;
      Numbers gradient;
      for (std::size_t i = 0; i < xs.size(); ++i) {
        want += (xs[i] - ts[i]) * (xs[i] - ts[i]) / double(xs.size());
        gradient.push_back(3 * 2 * (xs[i] - ts[i]) / double(xs.size()));
      }
      EXPECT_NEAR(mean_squared_error<T>(x.view, target.view, dx.view, 3, context), want, 8 * kEpsilon<T> * want);
      EXPECT_NEAR(mean_squared_error<T>(x.view, target.view, {}, 3, context), want, 8 * kEpsilon<T> * want);
      testing::expect_close<T>(dx.values(), gradient, 4, "dx");
      EXPECT_TRUE(dx.intact());
    }
}

TYPED_TEST(LossTest, DoesNotDependOnTheNumberOfThreads) {
  using T = TypeParam;
  Numbers first;
  for (int threads : {1, 2, 7}) {
    Context context(threads);
    Case<T> c(700, 130, 33, 20, Layout::gaps);
    Numbers all{projected_cross_entropy<T>(c.in(), c.out(Accumulate::set, 1), context).mean};
    for (double g : c.gradients()) all.push_back(g);
    Rng rng(5);
    const Array<T, 4> x({2, 300, 3, 19}, Layout::gaps, rng), target({2, 300, 3, 19}, Layout::dense, rng), dx({2, 300, 3, 19});
    all.push_back(mean_squared_error<T>(x.view, target.view, dx.view, 1, context));
    const View<const T, 2> flat{target.view.data, {300, 114}, {114, 1}};
    const LabelArray labels(300, 114, rng);
    const Array<T, 2> dz({300, 114});
    all.push_back(cross_entropy<T>(flat, labels.view, dz.view, 1, context).mean);
    for (double g : dz.values()) all.push_back(g);
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << threads << " threads";
  }
}

TEST(LossErrors, SayWhatWasExpected) {
  Context context(1);
  using tests::error_of;
  Case<float> c(3, 4, 2, 0, Layout::dense);
  const std::string op = "projected_cross_entropy: ";
  const auto error = [&](auto change) {
    ProjectedLoss<float> in = c.in();
    ProjectedLossGradients<float> out = c.out(Accumulate::set, 1);
    change(in, out);
    return error_of([&] { projected_cross_entropy<float>(in, out, context); });
  };
  EXPECT_EQ(error([&](auto& in, auto&) { in.weight = transposed(in.weight); }),
            op + "expected weight with 2 columns, those of x, got 4");
  EXPECT_EQ(error([](auto& in, auto&) { in.softcap = -1; }), op + "expected softcap >= 0, got -1");
  EXPECT_EQ(error([](auto& in, auto&) { in.labels.shape = {2}; }), op + "expected labels [3], got [2]");
  EXPECT_EQ(error([](auto& in, auto&) { in.bias.shape = {3}; }), op + "expected bias [4], got [3]");
  EXPECT_EQ(error([](auto&, auto& out) { out.dx.shape = {3, 3}; }), op + "expected dx of the shape of x, [3, 2], got [3, 3]");
  EXPECT_EQ(error([](auto&, auto& out) {
              out.dweight.shape = {4, 3};
            }),
            op + "expected dweight of the shape of weight, [4, 2], got [4, 3]");
  EXPECT_EQ(error([](auto&, auto& out) { out.dbias.shape = {5}; }), op + "expected dbias [4], got [5]");
  c.labels.storage[2] = 4;
  EXPECT_EQ(error([](auto&, auto&) {}), op + "expected labels below 4, got 4 at [1]");
  EXPECT_EQ(error_of([&] { cross_entropy<float>(c.x.view, c.labels.view, c.weight.view, 1, context); }),
            "cross_entropy: expected labels below 2, got 4 at [1]");
  c.labels.storage.assign(7, 0);
  EXPECT_EQ(error_of([&] { cross_entropy<float>(c.x.view, c.labels.view, c.weight.view, 1, context); }),
            "cross_entropy: expected dlogits of the shape of logits, [3, 2], got [4, 2]");
  const Array<float, 4> x({1, 2, 3, 4}), y({1, 2, 3, 3});
  EXPECT_EQ(error_of([&] { mean_squared_error<float>(x.view, y.view, {}, 1, context); }),
            "mean_squared_error: expected target of the shape of x, [1, 2, 3, 4], got [1, 2, 3, 3]");
  EXPECT_EQ(error_of([&] { mean_squared_error<float>(x.view, x.view, y.view, 1, context); }),
            "mean_squared_error: expected dx of the shape of x, [1, 2, 3, 4], got [1, 2, 3, 3]");
}

}  // namespace
}  // namespace isomer

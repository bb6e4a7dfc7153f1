#include "isomer/mixers/dsf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "isomer/base/error.h"
#include "isomer/base/rng.h"
#include "isomer/laws/random.h"
#include "isomer/mixers/dsf_state.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

constexpr double kLimit = 1e-12;

/// The largest difference over the largest number wanted.
double error_of(const Signal& got, const Signal& want) {
  if (got.values.size() != want.values.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, size = 1e-300;
  for (std::size_t i = 0; i < want.values.size(); ++i) {
    const double d = std::abs(got.values[i] - want.values[i]);
    difference = d <= difference ? difference : std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
    size = std::max(size, std::abs(want.values[i]));
  }
  return difference / size;
}

/// Of what is looked at, with what it is made of.
void expect_same_weights(const Dsf& system, const DsfMap& map) {
  const DsfWeights weights = weights_of(system);
  const MemoryHorizon horizon = memory_horizon(map);
  EXPECT_NEAR(weights.horizon.tokens, horizon.tokens, 1e-9);
  EXPECT_NEAR(weights.horizon.unfinished, horizon.unfinished, 1e-9);
  for (Index t = 0; t < map.T; ++t)
    for (Index s = 0; s <= t; ++s) {
      double want = map.groups == 1 ? map(0, t, s).real() : 0;
      for (Index g = 0; map.groups > 1 && g < map.groups; ++g) want += std::abs(map(g, t, s)) / double(map.groups);
      ASSERT_NEAR(weights.values[t * map.T + s], want, kLimit * (1 + std::abs(want))) << t << ", " << s;
    }
}

/// h_t as a token leaves and writes it gives y_t, and is as large as the curve says.
void expect_same_state(const Dsf& system, const Signal& u) {
  const StateCurve curve = state_curve(system, u);
  Signal y = run(system, u);
  const Index t = system.T - 1;
  if (t < 0 || system.centred) return;
  const StateMoment moment = state_moment(system, u, t);
  double sum = 0, size = 1e-300;
  for (Index c = 0; c < system.channels; ++c) {
    const DsfToken& token = system.token(t, system.group_of_channel(c));
    Complex read = token.D * u(t, c);
    for (Index f = 0; f < system.features; ++f) {
      const Complex h = moment.kept[c * system.features + f] + moment.written[c * system.features + f];
      read += token.C[f] * h;
      sum += std::norm(h);
      size = std::max(size, std::abs(token.C[f] * h));
    }
    EXPECT_LE(std::abs(read - y(t, c)), 1e-11 * (size + std::abs(y(t, c))));
  }
  EXPECT_NEAR(curve.norm[t], std::sqrt(sum), 1e-11 * (1 + std::sqrt(sum)));
  if (sum > 0) {
    EXPECT_GE(curve.rank[t], 1 - 1e-6);
  }
  EXPECT_LE(curve.rank[t], double(std::min(system.channels, system.features)) * (1 + 1e-6));
}

/// A case of a law with its inputs and reference outputs.
struct Example {
  const Law& law;
  Settings settings;
  Tensors inputs, outputs;
  Sizes sizes;

  Example(const Law& of, const Case& what, std::uint64_t seed = 7)
      : law(of), settings(what.settings), inputs(random_inputs(of, what, Type::f64, seed)), sizes(complete(of, what)) {
    std::erase_if(inputs, [](const auto& input) { return input.first.starts_with("grad_"); });
    Context context(1);
    outputs = apply(law, {.inputs = inputs, .settings = settings, .form = Form::reference, .context = context});
  }
  [[nodiscard]] Dsf system(DsfPlace place, const DsfOptions& options = {}) const {
    return realise(law, inputs, settings, place, options);
  }
  [[nodiscard]] Signal u(DsfPlace place) const { return written(law, inputs, place); }
  [[nodiscard]] Signal y(DsfPlace place) const { return read(law, inputs, outputs, place); }
  [[nodiscard]] std::vector<DsfPlace> places() const {
    std::vector<DsfPlace> all;
    for (Index n = 0; n < sizes.at("n"); ++n)
      for (Index h = 0; h < (law.name() == "scan" ? 1 : sizes.at("H")); ++h) all.push_back({n, h});
    return all;
  }
};

void expect_same(const Example& x, DsfPlace place, const DsfOptions& options = {}) {
  const Dsf system = x.system(place, options);
  const Signal u = x.u(place), y = x.y(place);
  EXPECT_LE(error_of(run(system, u), y), kLimit) << "sequence " << place.sequence << ", head " << place.head;
  if (system.T > 120) return;
  const DsfMap map = materialise(system);
  EXPECT_LE(error_of(apply_map(system, map, u), y), kLimit) << "by the map; head " << place.head;
  for (Index g = 0; g < map.groups; ++g)
    for (Index t = 0; t < map.T; ++t)
      for (Index s = t + 1; s < map.T; ++s) ASSERT_EQ(map(g, t, s), Complex(0)) << "the map is causal";
  expect_same_weights(system, map);
  expect_same_state(system, u);
}

class EveryCase : public testing::TestWithParam<const Law*> {};

TEST_P(EveryCase, IsTheDynamicalSystem) {
  const Law& law = *GetParam();
  int seen = 0;
  for (const Case& what : law.cases()) {
    if (!read_bool(what.settings, "causal", true)) continue;
    SCOPED_TRACE(what.label);
    const Example x(law, what);
    for (const DsfPlace& place : x.places())
      for (const auto eta : {DsfOptions::Eta::telescoped, DsfOptions::Eta::read_out}) expect_same(x, place, {.eta = eta});
    ++seen;
  }
  EXPECT_GT(seen, 8);
}

INSTANTIATE_TEST_SUITE_P(Laws, EveryCase, testing::ValuesIn(laws().begin(), laws().end()),
                         [](const auto& law) { return std::string(law.param->name()); });

const Law& attention() { return find_law("attention"); }

// Science P1.7, 1: the Taylor recurrence is the polynomial attention.
TEST(DsfAttention, OfTheTaylorKernelIsARecurrenceOnMonomials) {
  for (const char* order : {"0", "1", "2", "3", "5"})
    for (const char* normaliser : {"l2", "layer", "count", "none"}) {
      SCOPED_TRACE(std::string(order) + " " + normaliser);
      const Settings settings{{"kernel", "taylor"}, {"order", order}, {"normaliser", normaliser}};
      const Example x(attention(), {.settings = settings, .with = {"log_forget"}, .sizes = {{"S", 25}, {"K", 3}}});
      expect_same(x, {1, 1}, {.order = std::stoi(order)});
    }
}

TEST(DsfAttention, OfFiveFeaturesAndOrderTwoHas21MonomialsAChannel) {
  const Example x(attention(), {.settings = {{"kernel", "taylor"}}});
  EXPECT_EQ(x.system({}, {.order = 2}).features, 1 + 5 + 15);
  EXPECT_EQ(state_dimension(x.system({}, {.order = 2})), 21 * 3);
}

TEST(DsfAttention, TaylorOrdersConvergeToSoftmax) {
  const Example x(attention(), {.with = {"log_forget"}, .sizes = {{"K", 2}}});
  double before = 1;
  for (int order : {2, 4, 8, 16}) {
    const double error = error_of(run(x.system({}, {.order = order}), x.u({})), x.y({}));
    EXPECT_LT(error, 0.3 * before) << order;
    before = error;
  }
  EXPECT_LT(error_of(run(x.system({}, {.order = 30}), x.u({})), x.y({})), kLimit);
}

TEST(DsfAttention, KeepsOnlyTheWindowAndTheSinks) {
  const Example x(attention(), {.settings = {{"window", "5"}, {"sinks", "3"}}});
  EXPECT_EQ(x.system({}).features, 8);
  EXPECT_EQ(Example(attention(), {}).system({}).features, 19) << "all keys";
}

// Science P2.3: the normaliser depends on the query, so the ratio may exceed one.
TEST(DsfAttention, EigenvaluesOfSoftmaxAreTheRatiosOfNormalisers) {
  const Example x(attention(), {});
  const auto all = eigenvalues(x.system({}));
  const double* log_sum = x.outputs.at("log_sum").data<double>();  // [B,T,H]
  double largest = 0;
  for (Index t = 1; t < 19; ++t) {
    const double ratio = std::exp(log_sum[(t - 1) * 2] - log_sum[t * 2]);
    EXPECT_NEAR(all[t][0].real(), ratio, 1e-13 * ratio);
    largest = std::max(largest, ratio);
  }
  EXPECT_GT(largest, 1);
}

/// By distance from one, the farthest first.
std::vector<double> real_spectrum(std::vector<Complex> all) {
  std::vector<double> values;
  for (const Complex& e : all) {
    EXPECT_NEAR(e.imag(), 0, 1e-13);
    values.push_back(e.real());
  }
  std::sort(values.begin(), values.end(), [](double a, double b) { return std::abs(a - 1) > std::abs(b - 1); });
  return values;
}

TEST(DsfDelta, HasTheSpectrumOfAReflection) {
  const Example x(find_law("delta"), {.with = {"beta"}, .unit_rows = {"k"}});
  const Dsf system = x.system({});
  const auto all = eigenvalues(system);
  for (Index t = 0; t < 19; ++t) {
    const std::vector<double> values = real_spectrum(all[t]);
    // Keys were rounded to float, so their length is one only to 1e-7.
    EXPECT_NEAR(values[0], 1 - x.inputs.at("beta").data<double>()[t * 2], 1e-6);
    for (std::size_t i = 1; i < values.size(); ++i) EXPECT_NEAR(values[i], 1, 1e-13);
    // The same by QR steps, which know nothing of the structure.
    const DsfToken& token = system.token(t, 0);
    std::vector<Complex> matrix;
    for (Index i = 0; i < 25; ++i)
      matrix.push_back(token.left[i / 5] * token.right[i % 5] + (i / 5 == i % 5 ? token.decay[i / 5] : 0.0));
    const std::vector<double> dense = real_spectrum(eigenvalues(matrix, 5));
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(dense[i], values[i], 1e-13);
  }
}

// A decay of each key below one times a reflection: no mode grows, and the product of all eigenvalues is the determinant.
TEST(DsfDelta, WithADecayOfEachKeyForgets) {
  const Example x(find_law("delta"), {.with = {"beta", "log_decay:B T H K"}, .unit_rows = {"k"}});
  const Dsf system = x.system({});
  const auto all = eigenvalues(system);
  for (Index t = 0; t < 19; ++t) {
    Complex product = 1, determinant = 1 - x.inputs.at("beta").data<double>()[t * 2];
    for (const Complex& e : all[t]) {
      EXPECT_LE(std::abs(e), 1 + 1e-7);
      product *= e;
    }
    for (const Complex& a : system.token(t, 0).decay) determinant *= a;
    EXPECT_LT(std::abs(product - determinant), 1e-6);
  }
}

TEST(DsfScan, HasComplexEigenvalues) {
  const Example x(find_law("scan"), {.with = {"log_decay", "angle"}});
  const auto all = eigenvalues(x.system({1, 0}));
  const double *decay = x.inputs.at("log_decay").data<double>(), *angle = x.inputs.at("angle").data<double>();  // [B,T,N]
  for (Index t = 0; t < 19; ++t)
    for (Index i = 0; i < 3; ++i) {
      const Index at = (19 + t) * 3 + i;
      EXPECT_LT(std::abs(all[t][i] - std::polar(std::exp(decay[at]), angle[at])), 1e-15);
    }
}

TEST(Eigenvalues, OfAMatrixAddUpAndMultiply) {
  Rng rng(3);
  for (Index n : {1, 2, 3, 8, 20}) {
    std::vector<Complex> matrix;
    for (Index i = 0; i < n * n; ++i) {
      const double imag = rng.normal(), real = rng.normal();
      matrix.emplace_back(real, imag);
    }
    Complex trace = 0, squares = 0, sum = 0, sum_squares = 0;
    for (Index i = 0; i < n; ++i) {
      trace += matrix[i * n + i];
      for (Index j = 0; j < n; ++j) squares += matrix[i * n + j] * matrix[j * n + i];
    }
    for (const Complex& e : eigenvalues(matrix, n)) sum += e, sum_squares += e * e;
    EXPECT_LT(std::abs(sum - trace), 1e-12 * double(n)) << n;
    EXPECT_LT(std::abs(sum_squares - squares), 1e-11 * double(n)) << n;
  }
  // The shift of a cycle: no QR step without a shift changes it, and its spectrum is the roots of one.
  auto values = eigenvalues({0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, 4);
  for (const Complex& e : values) EXPECT_LT(std::abs(e * e * e * e - 1.0), 1e-13);
}

TEST(DsfState, OfTwoTokensIsWhatIsKeptAndWritten) {
  // A channel with two features: the first token writes (1, 0), the second halves it and writes (0, 3).
  Dsf system{.T = 2, .channels = 1, .features = 2, .initial = {0, 0}};
  system.tokens = {{.decay = {1, 1}, .left = {}, .right = {}, .B = {1, 0}, .C = {1, 1}},
                   {.decay = {0.5, 0.5}, .left = {}, .right = {}, .B = {0, 1}, .C = {1, 1}}};
  Signal u{2, 1};
  u(0, 0) = 1, u(1, 0) = 3;
  const StateMoment now = state_moment(system, u, 1);
  EXPECT_EQ(now.kept, (std::vector<Complex>{0.5, 0}));
  EXPECT_EQ(now.written, (std::vector<Complex>{0, 3}));
  const StateCurve curve = state_curve(system, u);
  EXPECT_EQ(curve.kept, (std::vector<double>{0, 0.5}));
  EXPECT_EQ(curve.written, (std::vector<double>{1, 3}));
  EXPECT_DOUBLE_EQ(curve.norm[1], std::sqrt(9.25));
  EXPECT_EQ(tests::error_of([&] { (void)state_moment(system, u, 2); }), "dsf: expected a token below 2, got 2");
}

TEST(MemoryHorizon, OfAFixedDecayIsItsLogarithm) {
  // 0.5^n is at least 1 % up to n = 6: seven tokens with the first.
  const Index T = 40;
  DsfMap map{T, 1};
  for (Index s = 0; s < T; ++s)
    for (Index t = s; t < T; ++t) map(0, t, s) = std::pow(0.5, double(t - s));
  EXPECT_EQ(memory_horizon(map).tokens, 7);
  EXPECT_EQ(memory_horizon(map).unfinished, 0);
  for (Complex& x : map.values) x = x == Complex(0) ? 0 : 1;
  EXPECT_EQ(memory_horizon(map).tokens, 30.5) << "from 40 tokens for the first to 21 for the twentieth";
  EXPECT_EQ(memory_horizon(map).unfinished, 1);
}

TEST(Dsf, RefusesWhatItCannotRealise) {
  const Example x(attention(), {.settings = {{"window", "4"}}});
  EXPECT_EQ(tests::error_of([&] { (void)realise(x.law, x.inputs, {{"causal", "false"}}, {}); }), "dsf: expected a causal law");
  EXPECT_EQ(tests::error_of([&] { (void)x.system({2, 0}); }), "dsf: expected a sequence below 2, got 2");
  EXPECT_EQ(tests::error_of([&] { (void)x.system({0, 2}); }), "dsf: expected a head below 2, got 2");
  EXPECT_EQ(tests::error_of([&] { (void)x.system({}, {.order = 3}); }), "dsf: expected no window with a Taylor order, got 4");
  EXPECT_EQ(tests::error_of([&] {
              (void)realise(x.law, x.inputs, {{"kernel", "taylor"}}, {}, {.order = 3});
            }),
            "dsf: expected order 2 as the kernel has, got 3");
  EXPECT_EQ(tests::error_of([&] {
              (void)realise(x.law, x.inputs, {{"kernel", "taylor"}, {"clamp", "5"}}, {}, {.order = 2});
            }),
            "dsf: expected no clamp with a Taylor order, got 5");
  EXPECT_EQ(tests::error_of([&] { (void)run(x.system({}), Signal{19, 4}); }), "dsf: expected u of [19, 3], got [19, 4]");
  Tensors single;
  for (const auto& [name, tensor] : x.inputs) single.emplace(name, tensor.cast(Type::f32));
  EXPECT_EQ(tests::error_of([&] { (void)realise(x.law, single, {}, {}); }), "dsf: expected k of type F64, got F32");
}

}  // namespace
}  // namespace isomer

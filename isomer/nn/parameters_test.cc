#include "isomer/nn/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "isomer/autograd/linear.h"
#include "isomer/autograd/views.h"
#include "isomer/base/error.h"
#include "isomer/base/rng.h"
#include "isomer/nn/init.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
using Kind = graph::Init::Kind;

using tests::error_of;

/// q and k below each other, a bias for k alone.
struct Projections {
  Parameters<double> store;
  Var<double> weight, bias;

  Projections() {
    weight = store.add_block({{.name = "q.weight", .shape = {2, 3}}, {.name = "k.weight", .shape = {4, 3}}});
    bias = store.add_block({{.name = "", .shape = {2}}, {.name = "k.bias", .shape = {4}, .decay = Decay::no}});
    initialise(store, 1);
  }
};

TEST(Parameters, ThatAreFrozenGetNoGradients) {
  Projections p;
  p.store.freeze([](const std::string& name) { return name == "q.weight" || name == "k.bias"; });
  EXPECT_EQ(p.store.trained_size(), 12);
  EXPECT_TRUE(p.weight.wanted()) << "k.weight is in the same block";
  EXPECT_FALSE(p.bias.wanted());
  p.store.freeze([](const std::string& name) { return name == "k.weight"; });
  EXPECT_EQ(p.store.trained_size(), 0) << "what was frozen stays so";
  EXPECT_FALSE(p.weight.wanted());
}

TEST(Parameters, AreDrawnEachByItself) {
  const Projections all;
  Projections some;
  for (const Parameter<double>& p : some.store.all()) std::ranges::fill(p.values(), 7);
  initialise(some.store, 1, [](const std::string& name) { return name == "k.weight"; });
  for (std::size_t i = 0; i < 3; ++i) {
    const auto whole = all.store.all()[i].values(), now = some.store.all()[i].values();
    const bool drawn = all.store.all()[i].name() == "k.weight";
    EXPECT_EQ(std::ranges::equal(whole, now), drawn);
    EXPECT_EQ(std::ranges::count(now, 7), drawn ? 0 : std::ranges::ssize(now));
  }
}

TEST(Parameters, OfABlockKeepTheirNames) {
  const Projections p;
  ASSERT_EQ(p.store.all().size(), 3U);
  EXPECT_EQ(p.store.trained_size(), 6 + 12 + 4);
  EXPECT_EQ(p.weight.shape(), (Shape4{1, 1, 6, 3}));
  EXPECT_EQ(p.bias.shape(), (Shape4{1, 1, 1, 6}));
  EXPECT_EQ(p.store.find("k.weight").values().data(), p.weight.value.at(0, 0, 2));
  EXPECT_EQ(p.bias.value(0, 0, 0, 1), 0.0) << "a part without a name is zero";
  EXPECT_EQ(error_of([&] { (void)p.store.find("q.weigth"); }), "parameters: there is no q.weigth, did you mean q.weight?");
}

TEST(Parameters, GetTheirGradientsFromTheTape) {
  Projections p;
  Context context(1);
  Tape<double> tape(context);
  std::vector<double> x{1, 2, 3};
  EXPECT_TRUE(p.store.find("q.weight").gradient().empty());
  for (int step = 0; step < 2; ++step) {
    p.store.zero_gradients();
    // Two uses add up; the second step starts anew.
    for (int use = 0; use < 2; ++use) {
      tape.backward(ops::linear(tape, tape.input(contiguous(x.data(), {1, 1, 1, 3})), p.weight, p.bias));
      tape.clear();
    }
    EXPECT_EQ(p.store.find("k.weight").gradient()[4], 4.0);
    EXPECT_EQ(p.store.find("k.bias").gradient()[0], 2.0);
  }
}

TEST(Parameters, ThatAreFixedGetNone) {
  Parameters<float> store;
  const Var<float> w =
      store.add({.name = "w", .shape = {2, 2}, .init = graph::constant(1), .training = graph::Training::fixed}).var;
  initialise(store, 0);
  EXPECT_FALSE(w.wanted());
  EXPECT_EQ(store.trained_size(), 0);
}

TEST(Parameters, AreSavedAndLoadedByName) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path / "parameters.safetensors";
  Projections p;
  p.store.save(path);
  Parameters<float> other;
  other.add({.name = "k.weight", .shape = {4, 3}});
  other.add({.name = "k.bias", .shape = {4}});
  EXPECT_EQ(error_of([&] { other.load(path); }), "parameters: there is no q.weight, did you mean k.weight?");
  other.add({.name = "q.weight", .shape = {3, 2}});
  EXPECT_EQ(error_of([&] { other.load(path); }), "parameters: expected q.weight [3, 2], got [2, 3]");
  Parameters<float> more;
  for (const auto& parameter : p.store.all()) more.add(parameter.spec);
  more.load(path);
  EXPECT_EQ(more.find("k.weight").values()[5], float(p.store.find("k.weight").values()[5]));
  more.add({.name = "v.weight", .shape = {1, 3}});
  EXPECT_EQ(error_of([&] { more.load(path); }), "parameters: expected v.weight [1, 3], found none");
  EXPECT_EQ(error_of([&] { more.add({.name = "v.weight", .shape = {1}}); }),
            "parameters: expected a new name, got v.weight again");
}

/// The rows of q [2, 3] and k [4, 3] below each other.
struct GivenRows {
  std::shared_ptr<std::vector<double>> numbers = std::make_shared<std::vector<double>>(18);
  GivenRows() { std::iota(numbers->begin(), numbers->end(), 1.0); }
  [[nodiscard]] TensorViews views() const {
    const auto at = [&](Index first, std::vector<Index> shape) {
      return dense_view(Type::f64, reinterpret_cast<const std::byte*>(numbers->data() + first), shape);
    };
    return {{"q", at(0, {2, 3})}, {"k", at(6, {4, 3})}};
  }
};

TEST(GivenNumbers, StayWhereTheyAre) {
  const GivenRows rows;
  Parameters<double> store(Type::f64, {rows.views(), rows.numbers});
  const Var<double> both = store.add_block({{.name = "q", .shape = {2, 3}}, {.name = "k", .shape = {4, 3}}});
  EXPECT_EQ(both.value.data, rows.numbers->data());
  EXPECT_EQ(rows.numbers.use_count(), 2) << "the store keeps them";
  store.assign(rows.views());
  EXPECT_EQ(store.find("k").values()[0], 7);
  EXPECT_EQ(store.own_bytes(), 0);
}

TEST(GivenNumbers, AreLookedForUntilAllHaveTheirs) {
  const GivenRows rows;
  Parameters<double> store(Type::f64, {rows.views(), rows.numbers});
  (void)store.add({.name = "q", .shape = {2, 3}});
  store.assign(TensorViews{{"q", rows.views().at("q")}});
  EXPECT_NE(store.add({.name = "k", .shape = {4, 3}}).numbers().data, rows.views().at("k").data);
  EXPECT_EQ(store.own_bytes(), 12 * Index(sizeof(double)));
}

TEST(GivenNumbers, AreCopiedWhereTheyDoNotFit) {
  const GivenRows rows;
  const auto copied = [&](std::vector<ParameterSpec> parts, bool stored = false) {
    Parameters<double> store(Type::f64, {rows.views(), rows.numbers});
    Parameters<float> single(stored ? Type::bf16 : Type::f32, {rows.views(), rows.numbers});
    (void)store.add_block(parts);
    (void)single.add_block(parts);
    EXPECT_EQ(single.own_bytes(), 18 * (stored ? 2 : 4)) << "another type";
    store.assign(rows.views());
    single.assign(rows.views());
    EXPECT_EQ(store.find("q").values()[5], 6);
    EXPECT_EQ(store.find("k").values()[11], 18);
    EXPECT_EQ(single.tensors().at("k").cast(Type::f32).data<float>()[11], 18);
    return store.own_bytes();
  };
  const ParameterSpec q{.name = "q", .shape = {2, 3}}, k{.name = "k", .shape = {4, 3}};
  EXPECT_EQ(copied({q, k}), 0);
  EXPECT_EQ(copied({k, q}), 18 * 8) << "another order";
  ParameterSpec product_q = q, product_k = k;
  product_q.reader = product_k.reader = Reader::products;
  EXPECT_EQ(copied({product_q, product_k}, true), 0);
  Parameters<double> padded(Type::f64, {rows.views(), rows.numbers});
  (void)padded.add_block({q, {.name = "", .shape = {1, 3}}, k});
  EXPECT_EQ(padded.own_bytes(), 21 * 8) << "with rows that nobody gave";
  Parameters<double> other(Type::f64, {rows.views(), rows.numbers});
  (void)other.add({.name = "q", .shape = {3, 2}});
  EXPECT_EQ(other.own_bytes(), 6 * 8) << "another shape";
}

TEST(Init, DependsOnTheNameAlone) {
  Parameters<double> small, large;
  small.add({.name = "b", .shape = {5}});
  large.add({.name = "a", .shape = {7}});
  large.add({.name = "b", .shape = {5}});
  initialise(small, 3);
  initialise(large, 3);
  EXPECT_TRUE(std::ranges::equal(small.find("b").values(), large.find("b").values()));
  EXPECT_NE(large.find("a").values()[0], large.find("b").values()[0]);
  initialise(large, 4);
  EXPECT_FALSE(std::ranges::equal(small.find("b").values(), large.find("b").values()));
}

TEST(Init, TakesTheRandomNumbersOfTheOneBesideIt) {
  Parameters<double> all;
  all.add({.name = "layers.0.nu", .shape = {9}, .init = {.kind = Kind::ring, .a = 0.1, .b = 0.9}});
  all.add({.name = "layers.0.root", .shape = {9}, .init = {.kind = Kind::ring_root, .a = 0.1, .b = 0.9, .beside = "nu"}});
  initialise(all, 3);
  for (std::size_t n = 0; n < 9; ++n) {
    const double radius = std::exp(-std::exp(all.find("layers.0.nu").values()[n]));
    EXPECT_NEAR(all.find("layers.0.root").values()[n], std::log(std::sqrt(1 - radius * radius)), 1e-12);
  }
}

std::vector<double> sample(Kind kind, double a, double b, std::vector<Index> shape = {200, 100}) {
  return initial_values({.kind = kind, .a = a, .b = b}, shape, Rng(5));
}
double mean(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0) / double(x.size()); }
std::vector<double> mapped(std::vector<double> x, const auto& f) {
  std::ranges::transform(x, x.begin(), f);
  return x;
}
void expect_range(const std::vector<double>& x, double low, double high) {
  const auto [least, most] = std::ranges::minmax(x);
  const double slack = 1e-3 * (high - low);
  EXPECT_NEAR(least, low, slack);
  EXPECT_NEAR(most, high, slack);
}

TEST(Init, HasTheStatisticsOfItsKind) {
  // 20000 numbers: a mean is off by at most 4/√20000 deviations.
  const double off = 4 / std::sqrt(20000.0);
  const auto normal = sample(Kind::normal, 1, 0.5);
  EXPECT_NEAR(mean(normal), 1, off * 0.5);
  EXPECT_NEAR(mean(mapped(normal, [](double x) { return (x - 1) * (x - 1); })), 0.25, off * 0.25 * std::sqrt(2.0));
  // Twice the unit matrix in normal numbers of deviation a half.
  const auto near = sample(Kind::near_identity, 2, 0.5, {100, 200});
  auto noise = near;
  for (std::size_t i = 0; i < 100; ++i) noise[i * 201] -= 2;
  EXPECT_NEAR(mean(noise), 0, off * 0.5);
  EXPECT_NEAR(mean(mapped(noise, [](double x) { return x * x; })), 0.25, off * 0.25 * std::sqrt(2.0));
  const auto uniform = sample(Kind::uniform, -1, 3);
  EXPECT_NEAR(mean(uniform), 1, off * 4 / std::sqrt(12.0));
  expect_range(uniform, -1, 3);
  const auto exponential = mapped(sample(Kind::log_uniform, 1, 16), [](double x) { return std::exp(x); });
  EXPECT_NEAR(mean(exponential), 8.5, off * 15 / std::sqrt(12.0));
  expect_range(exponential, 1, 16);
  const auto steps =
      mapped(sample(Kind::softplus_inverse, 1e-3, 0.1), [](double x) { return std::log(std::log1p(std::exp(x))); });
  EXPECT_NEAR(mean(steps), std::log(1e-2), off * std::log(100.0) / std::sqrt(12.0));
  expect_range(steps, std::log(1e-3), std::log(0.1));
  // The area of a ring grows with the squared radius.
  const auto squares = mapped(sample(Kind::ring, 0.4, 0.8), [](double x) { return std::exp(-2 * std::exp(x)); });
  EXPECT_NEAR(mean(squares), 0.4, off * 0.48 / std::sqrt(12.0));
  expect_range(squares, 0.16, 0.64);
  const auto gates = mapped(sample(Kind::gate_ring, 0.4, 0.8), [](double x) { return std::pow(1 + std::exp(x), -2.0); });
  EXPECT_NEAR(mean(gates), 0.4, off * 0.48 / std::sqrt(12.0));
  expect_range(gates, 0.16, 0.64);
}

TEST(Init, OfFixedKindsIsWhatItSays) {
  EXPECT_EQ(sample(Kind::constant, 3, 0, {2}), (std::vector<double>{3, 3}));
  EXPECT_EQ(sample(Kind::linspace, 1, 2, {5}), (std::vector<double>{1, 1.25, 1.5, 1.75, 2}));
  EXPECT_EQ(sample(Kind::linspace, 1, 2, {1}), (std::vector<double>{1}));
  EXPECT_EQ(sample(Kind::log_range, 0, 0, {2, 2}), (std::vector<double>{0, std::log(2.0), 0, std::log(2.0)}));
  EXPECT_EQ(sample(Kind::identity, 2, 0, {2, 2, 3}), (std::vector<double>{2, 0, 0, 0, 2, 0, 2, 0, 0, 0, 2, 0}));
  const graph::Init list{.kind = Kind::list, .values = {1, 2}};
  EXPECT_EQ(initial_values(list, std::vector<Index>{2, 2}, Rng(0)), (std::vector<double>{1, 1, 2, 2}));
  EXPECT_EQ(initial_values(list, std::vector<Index>{1, 2}, Rng(0)), (std::vector<double>{1, 2}));
  EXPECT_EQ(error_of([&] {
              (void)initial_values(list, std::vector<Index>{3, 2}, Rng(0));
            }),
            "init: expected a list of 6 numbers, or of 3, got 2");
}

TEST(Init, SemiOrthogonalMatricesKeepLengths) {
  for (const auto& shape : {std::pair<Index, Index>{5, 9}, {9, 5}, {7, 7}}) {
    const Index rows = shape.first, columns = shape.second;
    const auto matrix = sample(Kind::semi_orthogonal, 0.5, 0, {rows, columns});
    const Index n = std::min(rows, columns), length = std::max(rows, columns);
    const auto at = [&](Index i, Index k) { return matrix[std::size_t(rows <= columns ? i * columns + k : k * columns + i)]; };
    for (Index a = 0; a < n; ++a)
      for (Index b = 0; b < n; ++b) {
        double dot = 0;
        for (Index k = 0; k < length; ++k) dot += at(a, k) * at(b, k);
        EXPECT_NEAR(dot, a == b ? 0.25 : 0, 1e-15) << rows << " x " << columns;
      }
  }
}

TEST(Init, OrthogonalRowsHaveTheLengthsOfNormalVectors) {
  constexpr Index kRows = 2000, kSize = 16;
  const auto rows = sample(Kind::orthogonal, 0, 0, {kRows, kSize});
  const auto dot = [&](Index a, Index b) {
    return std::inner_product(rows.begin() + a * kSize, rows.begin() + (a + 1) * kSize, rows.begin() + b * kSize, 0.0);
  };
  double worst = 0, squares = 0;
  for (Index n = 0; n < kRows; ++n) {
    squares += dot(n, n);
    for (Index m = n - n % kSize; m < n; ++m) worst = std::max(worst, std::abs(dot(n, m)));
  }
  EXPECT_LE(worst, 1e-12);
  EXPECT_NEAR(squares / kRows, kSize, 4 * std::sqrt(2.0 * kSize / kRows));
}

}  // namespace
}  // namespace isomer

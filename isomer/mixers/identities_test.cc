// What the sources say is the same, is the same: identities between mechanisms that hold for the laws themselves. Numbers of
// sections are those of the notes on the papers; a claim about a table is checked against the table.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "isomer/base/rng.h"
#include "isomer/kernels/rotary/rotary.h"
#include "isomer/laws/check.h"
#include "isomer/laws/law.h"
#include "isomer/mixers/dsf.h"

namespace isomer {
namespace {

Tensor filled(std::vector<Index> shape, const std::function<double(Index)>& value) {
  Tensor x(Type::f64, std::move(shape));
  for (Index i = 0; i < x.size(); ++i) x.data<double>()[i] = value(i);
  return x;
}
Tensor normal(std::vector<Index> shape, std::uint64_t stream, double deviation = 1) {
  Rng rng(17, stream);
  return filled(std::move(shape), [&](Index) { return deviation * rng.normal(); });
}
/// [1, n, 1, n]: as values they show the weights, as keys the queries are the logits.
Tensor unit_matrix(Index n) {
  return filled({1, n, 1, n}, [&](Index i) { return i / n == i % n ? 1.0 : 0.0; });
}
Tensor times(const Tensor& x, double factor) {
  return filled(x.shape(), [&](Index i) { return factor * x.data<double>()[i]; });
}
Tensors named(std::initializer_list<std::pair<const char*, const Tensor*>> tensors) {
  Tensors all;
  for (const auto& [name, tensor] : tensors) all.emplace(name, tensor->clone());
  return all;
}
Tensor output(const char* law, const Tensors& inputs, const Settings& settings = {}) {
  Context context(1);
  return apply(find_law(law), {.inputs = inputs, .settings = settings, .form = Form::automatic, .context = context})
      .at("o")
      .clone();
}
double at(const Tensor& x, Index i) { return x.data<double>()[i]; }

/// Weights of many queries on 64 keys whose logits are N(0, deviation²): [1, queries, 1, 64].
struct Rows {
  static constexpr Index kQueries = 4000, kKeys = 64;
  Tensor q, unit = unit_matrix(kKeys);

  explicit Rows(double deviation) : q(normal({1, kQueries, 1, kKeys}, 1, deviation)) {}
  [[nodiscard]] Tensor weights(Settings settings) const {
    settings.insert({{"scale", "1"}, {"causal", "false"}});
    return output("attention", named({{"q", &q}, {"k", &unit}, {"v", &unit}}), settings);
  }
  [[nodiscard]] Tensor taylor(int order, const char* normaliser) const {
    return weights({{"kernel", "taylor"}, {"order", std::to_string(order)}, {"normaliser", normaliser}});
  }
};

/// Means of the total variation between rows, of a hundred queries each: smallest and largest.
std::pair<double, double> range_of_variation(const Tensor& a, const Tensor& b) {
  constexpr Index kBatch = 100;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (Index batch = 0; batch < Rows::kQueries / kBatch; ++batch) {
    double sum = 0;
    for (Index i = 0; i < kBatch * Rows::kKeys; ++i) {
      const Index j = batch * kBatch * Rows::kKeys + i;
      sum += std::abs(at(a, j) - at(b, j)) / 2;
    }
    low = std::min(low, sum / double(kBatch));
    high = std::max(high, sum / double(kBatch));
  }
  return {low, high};
}

// Mongaras & Larson, P1.7, 2. The variation has a heavy tail (with order 16 its mean is far above its median), so that the table,
// a sample itself, can only be expected among the means of other samples.
TEST(TaylorAttention, ApproachesSoftmaxAsInTheTable) {
  constexpr std::array<int, 7> kOrders{1, 2, 4, 6, 8, 10, 16};
  struct Line {
    double deviation;
    std::array<double, 7> variation;
  };
  const std::array<Line, 3> table{{{0.5, {.059, .016, 8.7e-4, 3.3e-5, 9e-7, 2e-8, 4e-14}},
                                   {1, {.22, .096, .019, 2.8e-3, 2.9e-4, 2.3e-5, 3e-9}},
                                   {2, {.75, .36, .17, .073, .025, 6.9e-3, 3.8e-5}}}};
  for (const Line& line : table) {
    const Rows rows(line.deviation);
    const Tensor softmax = rows.weights({});
    for (std::size_t i = 0; i < kOrders.size(); ++i) {
      const auto [low, high] = range_of_variation(rows.taylor(kOrders[i], "sum"), softmax);
      EXPECT_LE(low, line.variation[i]) << "deviation " << line.deviation << ", order " << kOrders[i];
      EXPECT_GE(high, line.variation[i]) << "deviation " << line.deviation << ", order " << kOrders[i];
      if (kOrders[i] <= 8) {
        EXPECT_LE(high, 10 * low) << "the means say something";
      }
    }
  }
}

// P1.7, 3.
TEST(TaylorAttention, OfEvenOrderHasPositiveWeights) {
  const Rows rows(2);
  for (int order = 0; order <= 9; ++order) {
    const Tensor weights = rows.taylor(order, "none");
    Index negative = 0;
    for (Index i = 0; i < weights.size(); ++i) negative += at(weights, i) <= 0 ? 1 : 0;
    EXPECT_EQ(negative == 0, order % 2 == 0) << order;
  }
}

struct Tokens {
  Index B = 2, T = 23, H = 2, K = 6, V = 5;
  Tensor q = normal({B, T, H, K}, 1), k = normal({B, T, H, K}, 2), v = normal({B, T, H, V}, 3);
  [[nodiscard]] Tensors inputs() const { return named({{"q", &q}, {"k", &k}, {"v", &v}}); }
};

Tensor unit_rows(const Tensor& x) {
  const Index V = x.shape().back();
  return filled(x.shape(), [&](Index i) {
    double square = 0;
    for (Index c = i / V * V; c < (i / V + 1) * V; ++c) square += at(x, c) * at(x, c);
    return at(x, i) / std::sqrt(square);
  });
}

// P1.2: L2 is blind to the denominator, so "Norm" is softmax attention followed by an L2 norm of each head.
TEST(NormAttention, IsSoftmaxThenL2) {
  const Tensors inputs = Tokens().inputs();
  const Tensor norm = output("attention", inputs, {{"normaliser", "l2"}});
  EXPECT_LE(relative_error(norm, unit_rows(output("attention", inputs))), 1e-13);
  EXPECT_LE(relative_error(norm, unit_rows(output("attention", inputs, {{"normaliser", "none"}}))), 1e-13);
  EXPECT_LE(relative_error(norm, unit_rows(output("attention", inputs, {{"normaliser", "count"}}))), 1e-13) << "1/t does nothing";
}

// Han et al., InLine 1.3: identity features are the first order of softmax in its logits.
TEST(InLine, IsSoftmaxToFirstOrder) {
  const Tokens x;
  for (const char* causal : {"true", "false"}) {
    std::vector<double> errors;
    for (double size : {0.1, 0.01, 0.001}) {
      const Tensor q = times(x.q, size);
      const Tensors inputs = named({{"q", &q}, {"k", &x.k}, {"v", &x.v}});
      const Tensor inline_ = output("scalar_decay", inputs, {{"normaliser", "subtract"}, {"causal", causal}});
      errors.push_back(relative_error(inline_, output("attention", inputs, {{"causal", causal}})));
    }
    EXPECT_GT(errors[0], 1e-4);
    EXPECT_NEAR(errors[0] / errors[1], 100, 15) << causal;
    EXPECT_NEAR(errors[1] / errors[2], 100, 1.5) << causal;
  }
}

/// A decay and a key for each token and channel, such that channel t holds row t of `map` at token t: MetaLA's a_s = P_{s−1} /
/// P_s and k = 1 − a, and nothing is written afterwards.
void fit_rows(const Tensor& map, Index T, Tensor& log_decay, Tensor& k) {
  for (Index t = 0; t < T; ++t) {
    double sum = 0;
    for (Index s = 0; s < T; ++s) {
      const double before = sum;
      if (s <= t) sum += at(map, t * T + s);
      const double a = s > t ? 1 : s == 0 ? 0 : before / sum;
      log_decay.data<double>()[s * T + t] = std::log(a);
      k.data<double>()[s * T + t] = 1 - a;
    }
  }
}

// Chou et al., MetaLA 2.2: dynamic decay without keys can hold any softmax map with bounded parameters, a channel for each row.
TEST(MetaLa, HoldsAnyAttentionMap) {
  const Index T = 24;
  const Tensor q = normal({1, T, 1, 4}, 1, 3), k = normal({1, T, 1, 4}, 2), unit = unit_matrix(T), v = normal({1, T, 1, 3}, 3);
  const Tensor map = output("attention", named({{"q", &q}, {"k", &k}, {"v", &unit}}));
  Tensor log_decay(Type::f64, {1, T, 1, T}), keys(Type::f64, {1, T, 1, T});
  fit_rows(map, T, log_decay, keys);
  for (Index i = 0; i < keys.size(); ++i) {
    EXPECT_GE(at(keys, i), 0);
    EXPECT_LE(at(keys, i), 1);
  }
  // The query selects a channel.
  const Tensors row = named({{"q", &unit}, {"k", &keys}, {"v", &v}, {"log_decay", &log_decay}});
  const Tensor want = output("attention", named({{"q", &q}, {"k", &k}, {"v", &v}}));
  EXPECT_LE(relative_error(output("channel_decay", row, {{"scale", "1"}}), want), 1e-14);
  const DsfMap held = materialise(realise(find_law("channel_decay"), row, {{"scale", "1"}}, {}));
  for (Index t = 0; t < T; ++t)
    for (Index s = 0; s <= t; ++s) EXPECT_NEAR(held(0, t, s).real(), at(map, t * T + s), 1e-14);
  Tensors single;
  for (const auto& [name, tensor] : row) single.emplace(name, tensor.cast(Type::f32));
  EXPECT_LE(relative_error(output("channel_decay", single, {{"scale", "1"}}), want), 1e-6);
}

// 2.2: with a fixed decay the keys must grow like decay^−T, so bounded parameters do not suffice.
TEST(MetaLa, NeedsADecayThatMoves) {
  const Index T = 24;
  const double decay = 0.8;
  Tensor ones = filled({1, T, 1, 1}, [](Index) { return 1.0; }), unit = unit_matrix(T);
  const Tensor log_decay = filled({1, T, 1, 1}, [&](Index) { return std::log(decay); });
  const Tensors inputs = named({{"q", &ones}, {"k", &ones}, {"v", &unit}, {"log_decay", &log_decay}});
  const Tensor weights = output("channel_decay", inputs);
  // What a key of size one gets, against the same share for everybody.
  EXPECT_NEAR((1.0 / double(T)) / at(weights, (T - 1) * T), std::pow(decay, 1.0 - double(T)) / double(T), 1e-10);
}

// Sieber et al., P2.3.
TEST(Ssd, IsSeparableAttentionWithAnAccumulatedNormaliser) {
  const Tokens x{.B = 1, .H = 1};
  Rng rng(5);
  const double a = 0.7;
  std::vector<double> step, eta;
  for (Index t = 0; t < x.T; ++t) {
    step.push_back(std::log1p(std::exp(rng.normal())));
    eta.push_back((t > 0 ? eta.back() : 1.0) * std::exp(a * step.back()));
  }
  const Tensor log_decay = filled({1, x.T, 1}, [&](Index t) { return -a * step[t]; });
  const Tensor k = filled(x.k.shape(), [&](Index i) { return step[i / x.K] * at(x.k, i); });
  const Tensor ssd = output("scalar_decay", named({{"q", &x.q}, {"k", &k}, {"v", &x.v}, {"log_decay", &log_decay}}));
  // ψ_j = Δ_j η_j b_j, without any decay; then the division.
  const Tensor psi = filled(x.k.shape(), [&](Index i) { return step[i / x.K] * eta[i / x.K] * at(x.k, i); });
  const Tensor sums = output("scalar_decay", named({{"q", &x.q}, {"k", &psi}, {"v", &x.v}}));
  EXPECT_LE(relative_error(filled(sums.shape(), [&](Index i) { return at(sums, i) / eta[i / x.V]; }), ssd), 1e-13);
}

TEST(Ssd, HasAReversedSigmoidForADecay) {
  for (double a : {0.5, 1.0, 3.0})
    for (double z = -20; z <= 20; z += 0.37) {
      const double softplus = std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))), sigmoid = 1 / (1 + std::exp(z));
      EXPECT_NEAR(std::exp(-a * softplus), std::pow(sigmoid, a), 1e-14 * std::pow(sigmoid, a) * std::max(1.0, a * softplus));
    }
}

/// elu + 1.
Tensor positive(const Tensor& x) {
  return filled(x.shape(), [&](Index i) { return at(x, i) > 0 ? at(x, i) + 1 : std::exp(at(x, i)); });
}

// P2.3: the conditions are b_i / η_i for the input and η_{i−1} / η_i for the decay, and both are needed.
TEST(LinearAttention, IsSsdUnderItsConditionsOnly) {
  const Tokens x{.B = 1, .H = 1};
  const Tensor q = positive(x.q), k = positive(x.k);
  const Tensor want = output("scalar_decay", named({{"q", &q}, {"k", &k}, {"v", &x.v}}), {{"normaliser", "sum"}});
  std::vector<double> eta;
  Tensor ones = filled({1, x.T, 1, 1}, [](Index) { return 1.0; });
  const Tensor sums = output("scalar_decay", named({{"q", &q}, {"k", &k}, {"v", &ones}}));
  for (Index t = 0; t < x.T; ++t) eta.push_back(at(sums, t));
  const Tensor input = filled(k.shape(), [&](Index i) { return at(k, i) / eta[i / x.K]; });
  const auto decays = [&](double a) {  // a = 0: the ratio; else SSD's own, e^{−aΔ} with Δ = 1/η
    return filled({1, x.T, 1}, [&](Index t) { return a > 0 ? -a / eta[t] : t == 0 ? 0.0 : std::log(eta[t - 1] / eta[t]); });
  };
  const auto ssd = [&](const Tensor& log_decay, const Tensor& writes) {
    return output("scalar_decay", named({{"q", &q}, {"k", &writes}, {"v", &x.v}, {"log_decay", &log_decay}}));
  };
  EXPECT_LE(relative_error(ssd(decays(0), input), want), 1e-13);
  EXPECT_GT(relative_error(ssd(decays(1), input), want), 1e-2) << "the decay of SSD is not the ratio";
  EXPECT_GT(relative_error(ssd(decays(0), k), want), 1e-2) << "nor is its input scaled";
  // The ratio passes one where the query turns, which no decay of SSD can.
  double largest = 0;
  for (Index t = 1; t < x.T; ++t) largest = std::max(largest, eta[t - 1] / eta[t]);
  EXPECT_GT(largest, 1);
  const Dsf system = realise(find_law("scalar_decay"), named({{"q", &q}, {"k", &k}, {"v", &x.v}}), {{"normaliser", "sum"}}, {});
  for (Index t = 1; t < x.T; ++t) EXPECT_NEAR(eigenvalues(system)[t][0].real(), eta[t - 1] / eta[t], 1e-13);
}

// Sun et al.: one decay for each head, γ = 1 − 2^(−5−h), is (Q Kᵀ ∘ γ^(i−j)) V.
TEST(RetNet, IsAFixedDecayOfEachHead) {
  const Tokens x;
  const Tensor log_decay = filled({x.H}, [](Index h) { return std::log1p(-std::exp2(-5.0 - double(h))); });
  Tensors inputs = x.inputs();
  inputs.emplace("log_decay", log_decay.clone());
  const Tensor got = output("scalar_decay", inputs);
  const auto q = x.q.view<const double, 4>(), k = x.k.view<const double, 4>(), v = x.v.view<const double, 4>();
  const Tensor want = filled(got.shape(), [&](Index i) {
    const Index c = i % x.V, h = i / x.V % x.H, t = i / (x.V * x.H) % x.T, b = i / (x.V * x.H * x.T);
    double sum = 0;
    for (Index s = 0; s <= t; ++s) {
      double dot = 0;
      for (Index d = 0; d < x.K; ++d) dot += q(b, t, h, d) * k(b, s, h, d);
      sum += std::pow(1 - std::exp2(-5.0 - double(h)), double(t - s)) * dot * v(b, s, h, c);
    }
    return sum / std::sqrt(double(x.K));
  });
  EXPECT_LE(relative_error(got, want), 1e-13);
  for (Index h = 0; h < x.H; ++h)
    for (const auto& values : eigenvalues(realise(find_law("scalar_decay"), inputs, {}, {0, h})))
      for (const Complex& e : values) EXPECT_NEAR(e.real(), 1 - std::exp2(-5.0 - double(h)), 1e-15);
}

Tensor rotated(const Tensor& x, std::int64_t offset) {
  Context context(1);
  Tensor y(Type::f64, x.shape());
  rotary<double>(x.view<const double, 4>(), {.offset = offset}, y.view<double, 4>(), context);
  return y;
}

// Only the distance of query and key counts.
TEST(Rope, IsRelative) {
  const Tokens x;
  const auto attend = [&](std::int64_t from, std::int64_t keys_from) {
    const Tensor q = rotated(x.q, from), k = rotated(x.k, keys_from);
    return output("attention", named({{"q", &q}, {"k", &k}, {"v", &x.v}}));
  };
  const Tensor want = attend(0, 0);
  EXPECT_LE(relative_error(attend(3, 3), want), 1e-13);
  EXPECT_LE(relative_error(attend(4096, 4096), want), 1e-11);
  EXPECT_LE(relative_error(attend(7, 2), attend(5, 0)), 1e-13);
  EXPECT_GT(relative_error(attend(7, 2), want), 1e-2) << "the distance does count";
}

struct Parity {
  Index T = 64;
  std::vector<int> bits;  // the first token begins the sequence
  Tensor angle{Type::f64, {1, T, 1, 1}};

  Parity() {
    Rng rng(11);
    double sum = 0;
    for (Index t = 0; t < T; ++t) {
      bits.push_back(t > 0 && rng.below(2) == 1 ? 1 : 0);
      angle.data<double>()[t] = sum += std::numbers::pi * bits.back();
    }
  }
  /// 1 for an even number of ones so far, −1 for an odd.
  [[nodiscard]] double sign(Index t) const {
    int sum = 0;
    for (Index s = 0; s <= t; ++s) sum += bits[s];
    return sum % 2 == 0 ? 1 : -1;
  }
};

// Movahedi et al., 3.2: an angle of π for each one, and a key that the first token alone writes.
TEST(SelectiveRope, SolvesParityByConstruction) {
  const Parity x;
  const Tensor q = filled({1, x.T, 1, 2}, [](Index i) { return i % 2 == 0 ? 1.0 : 0.0; });
  const Tensor k = filled({1, x.T, 1, 2}, [](Index i) { return i == 0 ? 1.0 : 0.0; });
  const Tensor v = filled({1, x.T, 1, 1}, [](Index t) { return t == 0 ? 1.0 : 0.0; });
  Context context(1);
  Tensor turned_q(Type::f64, q.shape()), turned_k(Type::f64, k.shape());
  rotary<double>(q.view<const double, 4>(), x.angle.view<const double, 4>(), turned_q.view<double, 4>(), context);
  rotary<double>(k.view<const double, 4>(), x.angle.view<const double, 4>(), turned_k.view<double, 4>(), context);
  const Tensor o = output("scalar_decay", named({{"q", &turned_q}, {"k", &turned_k}, {"v", &v}}), {{"scale", "1"}});
  for (Index t = 0; t < x.T; ++t) EXPECT_NEAR(at(o, t), x.sign(t), 1e-12) << t;
}

// The same as a state that turns: a complex scan, whose eigenvalue is −1 at each one. Positive gates have none below zero.
TEST(SelectiveRope, IsAComplexEigenvalue) {
  const Parity x;
  const Tensor zero = filled({1, x.T, 1}, [](Index) { return 0.0; });
  const Tensor angle = filled({1, x.T, 1}, [&](Index t) { return std::numbers::pi * x.bits[t]; });
  const Tensor start = filled({1, x.T, 1}, [](Index t) { return t == 0 ? 1.0 : 0.0; });
  const Tensors inputs = named({{"x", &start}, {"log_decay", &zero}, {"angle", &angle}});
  const Dsf system = realise(find_law("scan"), inputs, {}, {});
  const Signal h = run(system, written(find_law("scan"), inputs, {}));
  for (Index t = 0; t < x.T; ++t) {
    EXPECT_NEAR(h(t, 0).real(), x.sign(t), 1e-12);
    EXPECT_NEAR(eigenvalues(system)[t][0].real(), x.bits[t] == 1 ? -1 : 1, 1e-15);
  }
}

}  // namespace
}  // namespace isomer

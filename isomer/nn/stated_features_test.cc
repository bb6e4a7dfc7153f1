// Presets that differ in their weights or feature maps alone, against a second statement of their layers.
#include "isomer/nn/stated_layer.h"

namespace isomer {
namespace {

using plain::divided;
using plain::dot;
using plain::Heads;
using plain::map;
using plain::Plain;
using plain::projected;
using plain::Rows;
using std::size_t;

double scaled(const Plain& p, const Heads& in, size_t h, size_t t, size_t s) {
  return dot(in.q, in.k, h, t, s, p.K) / std::sqrt(double(p.K));
}
double second_order(double s) { return 1 + s + s * s / 2; }
Rows quadratic(const Plain& p, double eps) {
  const Heads in = projected(p);
  return p.linear("o", plain::weighted(
                           in.v, p.H, [&](size_t h, size_t t, size_t s) { return second_order(scaled(p, in, h, t, s)); },
                           [&](size_t, size_t, double sum) { return 1 / (sum + eps); }));
}
Rows taylor(const Plain& p) { return quadratic(p, 0); }
Rows based(const Plain& p) { return quadratic(p, 1e-12); }
/// The last 5 tokens and the first 2.
Rows sliding_window(const Plain& p) {
  const Heads in = projected(p);
  const auto weight = [&](size_t h, size_t t, size_t s) { return s + 5 > t || s < 2 ? std::exp(scaled(p, in, h, t, s)) : 0; };
  return p.linear("o", plain::weighted(in.v, p.H, weight, [](size_t, size_t, double sum) { return 1 / sum; }));
}

Rows linear_with(const Plain& p, const std::function<Rows(const Rows&)>& phi, double eps) {
  const Heads in = projected(p);
  return p.linear("o", divided(p, phi(in.q), phi(in.k), in.v, eps));
}
double relu(double x) { return std::max(0.0, x); }
Rows linear_relu(const Plain& p) {
  return linear_with(
      p, [](const Rows& x) { return map(x, relu); }, 1e-8);
}
Rows linear_exp(const Plain& p) {
  return linear_with(
      p, [](const Rows& x) { return map(x, [](double y) { return std::exp(2 * y); }); }, 0);
}
Rows t2r(const Plain& p) {
  return linear_with(
      p, [&](const Rows& x) { return map(p.head_linear("features", x, p.H, p.K), relu); }, 1e-12);
}
/// Each head divided by what `size` makes of it.
Rows over(Rows x, size_t H, double (*term)(double), double (*size)(double)) {
  const size_t n = x[0].size() / H;
  for (auto& row : x)
    for (size_t h = 0; h < H; ++h) {
      double sum = 0;
      for (size_t i = h * n; i < (h + 1) * n; ++i) sum += term(row[i]);
      for (size_t i = h * n; i < (h + 1) * n; ++i) row[i] /= size(sum);
    }
  return x;
}
Rows unit(const Rows& x, size_t H) {
  return over(
      x, H, [](double y) { return y * y; }, std::sqrt);
}
Rows linear_softmax(const Plain& p) {
  const auto phi = [&](const Rows& x) {
    const auto same = [](double y) { return y; };
    return over(map(x, [](double y) { return std::exp(y); }), p.H, same, same);
  };
  return linear_with(p, phi, 0);
}
Rows linear_cosine(const Plain& p) {
  Heads in = projected(p);
  in.q = unit(in.q, p.H), in.k = unit(in.k, p.H);
  const auto weight = [&](size_t h, size_t t, size_t s) {
    return dot(in.q, in.k, h, t, s, p.K) * std::pow(double(s + 1), -plain::sigmoid(p.at("power")[h]));
  };
  return p.linear("o", plain::weighted(in.v, p.H, weight, [](size_t, size_t, double) { return 1.0; }));
}
Rows performer(const Plain& p) {
  const size_t m = 2 * p.K;
  const auto phi = [&](const Rows& in) {
    const Rows x = map(in, [&](double y) { return y * std::pow(double(p.K), -0.25); });
    Rows u = p.head_linear("features", x, p.H, m, false);
    for (size_t t = 0; t < p.T; ++t)
      for (size_t i = 0; i < p.H * m; ++i) u[t][i] = std::exp(u[t][i] - dot(x, x, i / m, t, t, p.K) / 2) / std::sqrt(double(m));
    return u;
  };
  return linear_with(p, phi, 1e-6);
}
Rows rff(const Plain& p) {
  const Heads in = projected(p);
  const Rows q = p.head_linear("features", unit(in.q, p.H), p.H, p.K, false);
  const Rows k = p.head_linear("features", unit(in.k, p.H), p.H, p.K, false);
  const auto weight = [&](size_t h, size_t t, size_t s) {
    double sum = 0;  // sin a sin b + cos a cos b
    for (size_t i = h * p.K; i < (h + 1) * p.K; ++i) sum += std::cos(q[t][i] - k[s][i]) / double(p.K);
    return sum;
  };
  return p.linear("o", plain::weighted(in.v, p.H, weight, [](size_t, size_t, double sum) { return 1 / std::max(sum, 0.1); }));
}

double one(size_t, size_t, double) { return 1; }
Rows linear_identity(const Plain& p) {
  const Heads in = projected(p);
  const Rows sums = plain::weighted(
      in.v, p.H, [&](size_t h, size_t t, size_t s) { return scaled(p, in, h, t, s); }, one);
  return p.linear("o", plain::normed(p, sums, p.H, 1e-6, {.name = "norm"}));
}
/// The sums themselves, each of length one.
Rows softmax_norm(const Plain& p) {
  const Heads in = projected(p);
  const Rows sums = plain::weighted(
      in.v, p.H, [&](size_t h, size_t t, size_t s) { return std::exp(scaled(p, in, h, t, s)); }, one);
  return p.linear("o", unit(sums, p.H));
}

TEST(StatedLayers, OfOtherWeights) {
  const std::vector<plain::Stated> all{
      {"taylor", {{"position", "none"}}, taylor},
      {"based", {{"key", "4"}}, based, 4, 8},
      {"sliding-window", {{"position", "none"}, {"window", "5"}, {"sinks", "2"}}, sliding_window},
      {"softmax-norm", {{"position", "none"}}, softmax_norm},
      {"linear-identity", {}, linear_identity},
      {"linear-relu", {}, linear_relu},
      {"linear-exp", {{"temperature", "2"}}, linear_exp},
      {"linear-softmax", {}, linear_softmax},
      {"linear-cosine", {}, linear_cosine},
      {"t2r", {}, t2r},
      {"performer", {}, performer},
      {"rff", {}, rff},
  };
  for (const plain::Stated& what : all) plain::expect_stated(what);
}

}  // namespace
}  // namespace isomer

#pragma once
// For tests of presets: what a layer is stated with a second time, in plain loops over double that know nothing of graphs, laws
// or kernels. Only the names and shapes of parameters are shared.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "isomer/nn/small_layer.h"

namespace isomer::plain {

/// A sequence: numbers of each token.
using Rows = std::vector<std::vector<double>>;

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double silu(double x) { return x * sigmoid(x); }
inline double softplus(double x) { return std::log1p(std::exp(x)); }
inline double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
inline double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

template <class F>
[[nodiscard]] Rows map(Rows x, F f) {
  for (auto& row : x)
    for (double& value : row) value = f(value);
  return x;
}
[[nodiscard]] inline Rows times(Rows a, const Rows& b) {
  for (std::size_t t = 0; t < a.size(); ++t)
    for (std::size_t i = 0; i < a[t].size(); ++i) a[t][i] *= b[t][i];
  return a;
}
/// The token before; zero at the first.
[[nodiscard]] inline Rows before(Rows x) {
  for (std::size_t t = x.size(); t-- > 1;) x[t] = x[t - 1];
  for (double& value : x[0]) value = 0;
  return x;
}

/// A layer's parameters and one of its inputs.
struct Plain {
  SmallLayer<double>* layer;
  Rows x, other;  // other: what it has from the first layer
  std::size_t T, d, H, K, V;

  [[nodiscard]] std::span<const double> at(const std::string& name) const {
    return layer->parameters().find(name.starts_with("shared.") ? name : "mixer." + name).values();
  }
  /// W x + b.
  [[nodiscard]] Rows linear(const std::string& name, const Rows& in, bool bias = false) const {
    const auto W = at(name + ".weight");
    const std::size_t n = in[0].size(), rows = W.size() / n;
    Rows out(T, std::vector<double>(rows, 0.0));
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t r = 0; r < rows; ++r) {
        if (bias) out[t][r] = at(name + ".bias")[r];
        for (std::size_t c = 0; c < n; ++c) out[t][r] += W[r * n + c] * in[t][c];
      }
    return out;
  }
  /// A matrix for each head.
  [[nodiscard]] Rows head_linear(const std::string& name, const Rows& in, std::size_t heads, std::size_t size,
                                 bool bias = true) const {
    const auto W = at(name + ".weight");
    const std::size_t n = in[0].size() / heads;
    const bool shared = W.size() == size * n && heads > 1;
    Rows out(T, std::vector<double>(heads * size, 0.0));
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t r = 0; r < size; ++r) {
          const std::size_t own = (shared ? 0 : h * size) + r;
          double& y = out[t][h * size + r];
          if (bias) y = at(name + ".bias")[own];
          for (std::size_t c = 0; c < n; ++c) y += W[own * n + c] * in[t][h * n + c];
        }
    return out;
  }
  /// Causal and depthwise; the last tap is the token itself.
  [[nodiscard]] Rows conv(const std::string& name, const Rows& in, bool bias = false) const {
    const auto W = at(name + ".weight");
    const std::size_t C = in[0].size(), width = W.size() / C;
    Rows out(T, std::vector<double>(C, 0.0));
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t c = 0; c < C; ++c) {
        if (bias) out[t][c] = at(name + ".bias")[c];
        for (std::size_t j = 0; j < width && j <= t; ++j) out[t][c] += W[c * width + width - 1 - j] * in[t - j][c];
      }
    return out;
  }
  [[nodiscard]] Rows down_up(const std::string& name, const Rows& in, bool bias, double (*between)(double)) const {
    return linear(name, map(linear(name + "_down", in), between), bias);
  }
};

/// Σ_{s ≤ t} w(h, t, s) v_s · factor(h, t, Σ w), of H heads.
template <class W, class F>
[[nodiscard]] Rows weighted(const Rows& v, std::size_t H, W w, F factor) {
  Rows out(v.size(), std::vector<double>(v[0].size(), 0.0));
  const std::size_t V = v[0].size() / H;
  for (std::size_t t = 0; t < v.size(); ++t)
    for (std::size_t h = 0; h < H; ++h) {
      double sum = 0;
      for (std::size_t s = 0; s <= t; ++s) {
        const double weight = w(h, t, s);
        sum += weight;
        for (std::size_t j = 0; j < V; ++j) out[t][h * V + j] += weight * v[s][h * V + j];
      }
      for (std::size_t j = 0; j < V; ++j) out[t][h * V + j] *= factor(h, t, sum);
    }
  return out;
}
[[nodiscard]] inline double dot(const Rows& q, const Rows& k, std::size_t h, std::size_t t, std::size_t s, std::size_t K) {
  double sum = 0;
  for (std::size_t i = 0; i < K; ++i) sum += q[t][h * K + i] * k[s][h * K + i];
  return sum;
}

struct Heads {
  Rows q, k, v;
};
[[nodiscard]] inline Heads projected(const Plain& p, bool bias = false) {
  return {p.linear("q", p.x, bias), p.linear("k", p.x, bias), p.linear("v", p.x, bias)};
}
/// φ(q)·φ(k) over its sum and eps, of features of any size.
[[nodiscard]] inline Rows divided(const Plain& p, const Rows& q, const Rows& k, const Rows& v, double eps) {
  const std::size_t n = q[0].size() / p.H;
  return weighted(
      v, p.H, [&](std::size_t h, std::size_t t, std::size_t s) { return dot(q, k, h, t, s, n); },
      [&](std::size_t, std::size_t, double sum) { return 1 / (sum + eps); });
}

/// How a head's state passes a token: gives o of q, k and v after the update of S [K, V].
using Update = std::function<void(std::vector<double>& S, std::size_t h, std::size_t t)>;
/// o_t = scale · S_tᵀ q_t.
[[nodiscard]] inline Rows recurrence(const Plain& p, const Rows& q, double scale, const Update& update) {
  Rows out(p.T, std::vector<double>(p.H * p.V, 0.0));
  for (std::size_t h = 0; h < p.H; ++h) {
    std::vector<double> S(p.K * p.V, 0.0);
    for (std::size_t t = 0; t < p.T; ++t) {
      update(S, h, t);
      for (std::size_t i = 0; i < p.K; ++i)
        for (std::size_t j = 0; j < p.V; ++j) out[t][h * p.V + j] += scale * q[t][h * p.K + i] * S[i * p.V + j];
    }
  }
  return out;
}

/// RMS norm (or layer norm, which takes the mean first) of each head; weights of each head, or one for all, or none.
struct NormOf {
  bool layer = false;
  std::string name = {};
  bool bias = false;
};
[[nodiscard]] inline Rows normed(const Plain& p, Rows x, std::size_t heads, double eps, const NormOf& what) {
  const std::size_t n = x[0].size() / heads;
  for (auto& row : x)
    for (std::size_t h = 0; h < heads; ++h) {
      double mean = 0, square = 0;
      for (std::size_t i = 0; i < n; ++i) mean += what.layer ? row[h * n + i] / double(n) : 0;
      for (std::size_t i = 0; i < n; ++i) square += std::pow(row[h * n + i] - mean, 2) / double(n);
      for (std::size_t i = 0; i < n; ++i) {
        double& value = row[h * n + i];
        value = (value - mean) / std::sqrt(square + eps);
        if (what.name.empty()) continue;
        const auto weight = p.at(what.name + ".weight");
        const std::size_t own = weight.size() == n ? i : h * n + i;
        value *= weight[own];
        if (what.bias) value += p.at(what.name + ".bias")[own];
      }
    }
  return x;
}

/// Pairs (n, n + K/2) turned by angle(h, t, n).
template <class A>
[[nodiscard]] Rows rotated(Rows x, std::size_t H, A angle) {
  const std::size_t K = x[0].size() / H;
  for (std::size_t t = 0; t < x.size(); ++t)
    for (std::size_t h = 0; h < H; ++h)
      for (std::size_t n = 0; n < K / 2; ++n) {
        double &a = x[t][h * K + n], &b = x[t][h * K + n + K / 2];
        const double c = std::cos(angle(h, t, n)), s = std::sin(angle(h, t, n)), was = a;
        a = c * was - s * b;
        b = s * was + c * b;
      }
  return x;
}

}  // namespace isomer::plain

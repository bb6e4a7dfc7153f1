// Presets with gates, delta rules and state spaces against a second statement of their layers, a token at a time.
#include <complex>

#include "isomer/nn/stated_layer.h"

namespace isomer {
namespace {

using plain::map;
using plain::Plain;
using plain::Rows;
using plain::sigmoid;
using plain::silu;
using plain::softplus;
using plain::times;
using std::size_t;

double same(double x) { return x; }
double log_sigmoid(double x) { return -softplus(-x); }
double root(size_t n) { return 1 / std::sqrt(double(n)); }

/// S ← diag(e^log_decay) S + k vᵀ.
plain::Update decayed(const Plain& p, const Rows& log_decay, const Rows& k, const Rows& v) {
  return [&p, &log_decay, &k, &v](std::vector<double>& S, size_t h, size_t t) {
    for (size_t i = 0; i < p.K; ++i)
      for (size_t j = 0; j < p.V; ++j)
        S[i * p.V + j] = std::exp(log_decay[t][h * p.K + i]) * S[i * p.V + j] + k[t][h * p.K + i] * v[t][h * p.V + j];
  };
}

Rows gla_with(const Plain& p, double eps) {
  const Rows q = p.linear("q", p.x), k = p.linear("k", p.x), v = p.linear("v", p.x);
  const Rows a = map(p.down_up("decay", p.x, true, same), [](double z) { return log_sigmoid(z) / 16; });
  const Rows o = plain::normed(p, plain::recurrence(p, q, root(p.K), decayed(p, a, k, v)), p.H, eps, {.name = "norm"});
  return p.linear("o", times(o, map(p.linear("gate", p.x), silu)));
}
Rows gla(const Plain& p) { return gla_with(p, 1e-5); }
Rows gla_of_models(const Plain& p) { return gla_with(p, 1e-6); }

/// Of layer 1 of 3: the lower bound is the second share of the softmax over layers.
Rows hgrn2(const Plain& p) {
  const auto bounds = p.at("shared.hgrn2.bounds");
  const size_t n = p.H * p.K;
  Rows f = map(p.linear("f", p.x), sigmoid);
  for (auto& row : f)
    for (size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (size_t layer = 0; layer < 3; ++layer) sum += std::exp(bounds[layer * n + i]);
      const double lb = std::exp(bounds[n + i]) / sum;
      row[i] = lb + (1 - lb) * row[i];
    }
  const Rows q = map(p.linear("q", p.x), silu), k = map(f, [](double x) { return 1 - x; }), v = p.linear("v", p.x);
  const Rows a = map(f, [](double x) { return std::log(x); });
  return p.linear("o", plain::normed(p, plain::recurrence(p, q, root(p.K), decayed(p, a, k, v)), 1, 1e-5, {.name = "norm"}));
}

Rows metala(const Plain& p) {
  const Rows x = map(p.conv("conv", p.x), silu);
  const Rows q = p.linear("q", x), v = p.linear("v", x);
  const Rows a = map(p.linear("a", x), [](double z) { return log_sigmoid(z) / 16; });
  const Rows k = map(a, [](double z) { return 1 - std::exp(z); });
  Rows o = plain::recurrence(p, q, root(p.K), decayed(p, a, k, v));
  for (size_t t = 0; t < p.T; ++t)
    for (size_t h = 0; h < p.H; ++h) {
      double own = 0;
      for (size_t i = 0; i < p.K; ++i) own += q[t][h * p.K + i] * p.at("augment.weight")[h * p.K + i] * k[t][h * p.K + i];
      for (size_t j = 0; j < p.V; ++j) o[t][h * p.V + j] += sigmoid(own * v[t][h * p.V + j]);
    }
  o = plain::normed(p, o, p.H, 1e-5, {.layer = true});
  return p.linear("o", times(o, map(p.linear("gate", x, true), silu)));
}

/// S ← diag(a) S, then S ← S - b k (kᵀS - vᵀ), with q and k of length one.
struct DeltaParts {
  Rows q, k, v, beta, log_decay;
};
Rows unit(Rows x, size_t H) {
  const size_t n = x[0].size() / H;
  for (auto& row : x)
    for (size_t h = 0; h < H; ++h) {
      double square = 1e-6;
      for (size_t i = 0; i < n; ++i) square += row[h * n + i] * row[h * n + i];
      for (size_t i = 0; i < n; ++i) row[h * n + i] /= std::sqrt(square);
    }
  return x;
}
DeltaParts delta_parts(const Plain& p) {
  const auto in = [&](const std::string& name) { return map(p.conv(name + "_conv", p.linear(name, p.x)), silu); };
  return {unit(in("q"), p.H), unit(in("k"), p.H), in("v"), map(p.linear("beta", p.x), sigmoid),
          Rows(p.T, std::vector<double>(p.H * p.K, 0.0))};
}
Rows delta(const Plain& p, const DeltaParts& in) {
  const auto update = [&](std::vector<double>& S, size_t h, size_t t) {
    for (size_t j = 0; j < p.V; ++j) {
      double held = 0;
      for (size_t i = 0; i < p.K; ++i) {
        S[i * p.V + j] *= std::exp(in.log_decay[t][h * p.K + i]);
        held += in.k[t][h * p.K + i] * S[i * p.V + j];
      }
      for (size_t i = 0; i < p.K; ++i) S[i * p.V + j] -= in.beta[t][h] * in.k[t][h * p.K + i] * (held - in.v[t][h * p.V + j]);
    }
  };
  return plain::normed(p, plain::recurrence(p, in.q, root(p.K), update), p.H, 1e-5, {.name = "norm"});
}
Rows deltanet(const Plain& p) { return p.linear("o", delta(p, delta_parts(p))); }
Rows gated_deltanet(const Plain& p) {
  DeltaParts in = delta_parts(p);
  const Rows step = map(p.linear("step", p.x, true), softplus);
  for (size_t t = 0; t < p.T; ++t)
    for (size_t i = 0; i < p.H * p.K; ++i) in.log_decay[t][i] = -std::exp(p.at("a_log")[i / p.K]) * step[t][i / p.K];
  return p.linear("o", times(delta(p, in), map(p.linear("gate", p.x), silu)));
}
Rows kda(const Plain& p) {
  DeltaParts in = delta_parts(p);
  const Rows step = map(p.down_up("step", p.x, true, same), softplus);
  for (size_t t = 0; t < p.T; ++t)
    for (size_t i = 0; i < p.H * p.K; ++i) in.log_decay[t][i] = -std::exp(p.at("a_log")[i / p.K]) * step[t][i];
  return p.linear("o", times(delta(p, in), map(p.down_up("gate", p.x, true, same), sigmoid)));
}

Rows mamba2(const Plain& p) {
  const size_t inner = p.H * p.V;
  const Rows all = map(p.conv("conv", p.linear("xbc", p.x), true), silu), step = map(p.linear("step", p.x, true), softplus);
  Rows c(p.T), y(p.T);
  for (size_t t = 0; t < p.T; ++t)
    for (size_t i = 0; i < p.H * p.K; ++i) c[t].push_back(all[t][inner + p.K + i % p.K]);
  const auto update = [&](std::vector<double>& S, size_t h, size_t t) {
    const double a = std::exp(-std::exp(p.at("a_log")[h]) * step[t][h]);
    for (size_t i = 0; i < p.K; ++i)
      for (size_t j = 0; j < p.V; ++j) S[i * p.V + j] = a * S[i * p.V + j] + step[t][h] * all[t][inner + i] * all[t][h * p.V + j];
  };
  Rows o = plain::recurrence(p, c, 1, update);
  for (size_t t = 0; t < p.T; ++t)
    for (size_t i = 0; i < inner; ++i) o[t][i] += p.at("d")[i / p.V] * all[t][i];
  return p.linear("o", plain::normed(p, times(o, map(p.linear("z", p.x), silu)), 1, 1e-5, {.name = "norm"}));
}

/// C and n without a stabiliser, over max(|n·q|, 1) (or without: `sig`).
Rows mlstm_cell(const Plain& p, const Rows& q, const Rows& k, const Rows& v, const Rows& i, const Rows& f, bool sig) {
  Rows out(p.T, std::vector<double>(p.H * p.V));
  for (size_t h = 0; h < p.H; ++h) {
    std::vector<double> C(p.K * p.V, 0.0), n(p.K, 0.0);
    for (size_t t = 0; t < p.T; ++t) {
      const double forget = sigmoid(f[t][h]), input = sig ? sigmoid(i[t][h]) : std::exp(i[t][h]);
      double below = 0;
      std::vector<double> above(p.V, 0.0);
      for (size_t r = 0; r < p.K; ++r) {
        n[r] = forget * n[r] + input * k[t][h * p.K + r];
        below += n[r] * q[t][h * p.K + r] * root(p.K);
        for (size_t c = 0; c < p.V; ++c) {
          C[r * p.V + c] = forget * C[r * p.V + c] + input * k[t][h * p.K + r] * v[t][h * p.V + c];
          above[c] += C[r * p.V + c] * q[t][h * p.K + r] * root(p.K);
        }
      }
      for (size_t c = 0; c < p.V; ++c) out[t][h * p.V + c] = above[c] / (sig ? 1 : std::max(std::abs(below), 1.0) + 1e-6);
    }
  }
  return out;
}
double cap(double x) { return 15 * std::tanh(x / 15); }
Rows mlstm_post(const Plain& p, bool sig) {
  const Rows i = map(p.linear("i", p.x, true), cap), f = map(p.linear("f", p.x, true), cap);
  const Rows h = mlstm_cell(p, p.linear("q", p.x), p.linear("k", p.x), p.linear("v", p.x), i, f, sig);
  const Rows o = plain::normed(p, h, p.H, 1e-6, {.layer = true, .name = "norm"});
  return p.linear("o", times(o, map(p.linear("gate", p.x), sigmoid)));
}
Rows mlstm(const Plain& p) { return mlstm_post(p, false); }
Rows mlstm_sig(const Plain& p) { return mlstm_post(p, true); }
Rows mlstm_pre_up(const Plain& p) {
  const size_t blocks = 2 * p.d / 4;
  const Rows u = p.linear("u", p.x), c = map(p.conv("conv", u, true), silu);
  const Rows q = p.head_linear("q", c, blocks, 4, false), k = p.head_linear("k", c, blocks, 4, false);
  const Rows v = p.head_linear("v", u, blocks, 4, false);
  Rows all = q;
  for (size_t t = 0; t < p.T; ++t) {
    all[t].insert(all[t].end(), k[t].begin(), k[t].end());
    all[t].insert(all[t].end(), v[t].begin(), v[t].end());
  }
  Rows h = mlstm_cell(p, q, k, v, p.linear("i", all, true), p.linear("f", all, true), false);
  h = plain::normed(p, h, p.H, 1e-5, {.layer = true, .name = "norm"});
  for (size_t t = 0; t < p.T; ++t)
    for (size_t i = 0; i < 2 * p.d; ++i) h[t][i] += p.at("skip")[i] * c[t][i];
  return p.linear("o", times(h, map(p.linear("z", p.x), silu)));
}

Rows mixed(const Plain& p, const std::string& name, const Rows* change = nullptr) {
  const Rows past = plain::before(p.x);
  Rows out = p.x;
  for (size_t t = 0; t < p.T; ++t)
    for (size_t i = 0; i < p.d; ++i)
      out[t][i] += (past[t][i] - p.x[t][i]) * (p.at(name)[i] + (change != nullptr ? (*change)[t][i] : 0));
  return out;
}
Rows rwkv6(const Plain& p) {
  const Rows base = mixed(p, "mix");
  const auto in = [&](const std::string& name) {
    const Rows change = p.down_up("mix_" + name, base, false, std::tanh);
    return mixed(p, "mu_" + name, &change);
  };
  const Rows r = p.linear("r", in("r")), k = p.linear("k", in("k")), v = p.linear("v", in("v")), g = p.linear("g", in("g"));
  const Rows w = map(p.down_up("w", in("w"), true, std::tanh), [](double x) { return -std::exp(x); });
  Rows o(p.T, std::vector<double>(p.H * p.V, 0.0));
  for (size_t h = 0; h < p.H; ++h) {
    std::vector<double> S(p.K * p.V, 0.0);
    for (size_t t = 0; t < p.T; ++t) {
      const plain::Update write = decayed(p, w, k, v);
      for (size_t i = 0; i < p.K; ++i)
        for (size_t j = 0; j < p.V; ++j)
          o[t][h * p.V + j] +=
              r[t][h * p.K + i] * (S[i * p.V + j] + p.at("u")[h * p.K + i] * k[t][h * p.K + i] * v[t][h * p.V + j]);
      write(S, h, t);
    }
  }
  o = plain::normed(p, o, p.H, 64e-5, {.layer = true, .name = "norm", .bias = true});
  return p.linear("o", times(o, map(g, silu)));
}
/// Of a layer after the first: values are mixed with those of the first.
Rows rwkv7(const Plain& p) {
  const Rows xv = mixed(p, "mu_v"), r = p.linear("r", mixed(p, "mu_r")), own = p.linear("k", mixed(p, "mu_k"));
  Rows v = p.linear("v", xv);
  const Rows share = map(p.down_up("mix", xv, true, same), sigmoid);
  for (size_t t = 0; t < p.T; ++t)
    for (size_t i = 0; i < v[t].size(); ++i) v[t][i] += (p.other[t][i] - v[t][i]) * share[t][i];
  const Rows w = map(p.down_up("w", mixed(p, "mu_w"), true, std::tanh), [](double x) { return -std::exp(-0.5) * sigmoid(x); });
  const Rows a = map(p.down_up("rate", mixed(p, "mu_a"), true, same), sigmoid),
             g = p.down_up("g", mixed(p, "mu_g"), false, sigmoid);
  Rows kk = own, k = own;
  for (size_t t = 0; t < p.T; ++t)
    for (size_t h = 0; h < p.H; ++h) {
      double square = 0;
      for (size_t i = h * p.K; i < (h + 1) * p.K; ++i) square += std::pow(own[t][i] * p.at("k_k")[i], 2);
      for (size_t i = h * p.K; i < (h + 1) * p.K; ++i) {
        kk[t][i] = own[t][i] * p.at("k_k")[i] / std::sqrt(square);
        k[t][i] = own[t][i] * (1 + (a[t][i] - 1) * p.at("k_a")[i]);
      }
    }
  const auto update = [&](std::vector<double>& S, size_t h, size_t t) {
    for (size_t j = 0; j < p.V; ++j) {
      double held = 0;
      for (size_t i = 0; i < p.K; ++i) held += kk[t][h * p.K + i] * S[i * p.V + j];
      for (size_t i = 0; i < p.K; ++i) {
        const size_t at = h * p.K + i;
        S[i * p.V + j] = std::exp(w[t][at]) * S[i * p.V + j] - kk[t][at] * a[t][at] * held + k[t][at] * v[t][h * p.V + j];
      }
    }
  };
  Rows o = plain::recurrence(p, r, 1, update);
  o = plain::normed(p, o, p.H, 64e-5, {.layer = true, .name = "norm", .bias = true});
  for (size_t t = 0; t < p.T; ++t)
    for (size_t h = 0; h < p.H; ++h) {
      double now = 0;
      for (size_t i = h * p.K; i < (h + 1) * p.K; ++i) now += r[t][i] * k[t][i] * p.at("r_k.weight")[i];
      for (size_t j = 0; j < p.V; ++j) o[t][h * p.V + j] += now * v[t][h * p.V + j];
    }
  return p.linear("o", times(g, o));
}

TEST(StatedLayers, WithMatrixStates) {
  const Place third{.width = 16, .layer = 1, .layers = 3, .before = 1};
  const std::vector<plain::Stated> all{
      {"gla", {}, gla, 4, 8},
      {"gla", {{"norm_eps", "1e-6"}}, gla_of_models, 4, 8},
      {"hgrn2", {}, hgrn2, 8, 8, third},
      {"metala", {}, metala, 4, 8},
      {"deltanet", {}, deltanet},
      {"gated-deltanet", {}, gated_deltanet, 6, 12},
      {"kda", {}, kda},
      {"mamba2", {{"key", "4"}}, mamba2, 4, 16},
      {"mlstm", {}, mlstm, 4, 8},
      {"mlstm", {{"block", "pre-up"}}, mlstm_pre_up, 16, 16},
      {"mlstm-sig", {}, mlstm_sig, 4, 8},
      {"rwkv6", {}, rwkv6},
      {"rwkv7", {}, rwkv7, 8, 8, third},
  };
  for (const plain::Stated& what : all) plain::expect_stated(what);
}

Rows rg_lru(const Plain& p) {
  const Rows u = p.conv("conv", p.linear("u", p.x, true), true);
  const Rows i = map(p.head_linear("input_gate", u, p.H, p.d / p.H), sigmoid);
  const Rows r = map(p.head_linear("recurrence_gate", u, p.H, p.d / p.H), sigmoid);
  Rows h = u;
  for (size_t t = 0; t < p.T; ++t)
    for (size_t c = 0; c < p.d; ++c) {
      const double a = std::exp(-8 * r[t][c] * softplus(p.at("rate")[c]));
      h[t][c] = t == 0 ? i[t][c] * u[t][c] : a * h[t - 1][c] + std::sqrt(1 - a * a) * i[t][c] * u[t][c];
    }
  return p.linear("o", times(h, map(p.linear("gate", p.x, true), plain::gelu_tanh)), true);
}

using Complex = std::complex<double>;

/// y + D x, GELU, and a gated projection.
Rows glu(const Plain& p, Rows y, double (*gelu)(double)) {
  for (size_t t = 0; t < p.T; ++t)
    for (size_t i = 0; i < p.d; ++i) y[t][i] = gelu(y[t][i] + p.at("d")[i] * p.x[t][i]);
  const Rows both = p.linear("o", y, true);
  for (size_t t = 0; t < p.T; ++t)
    for (size_t i = 0; i < p.d; ++i) y[t][i] = both[t][i] * sigmoid(both[t][p.d + i]);
  return y;
}
/// h = lambda h + gain (B x), y = Re(C h) of one system; c has real parts before those of -i.
Rows diagonal(const Plain& p, const std::vector<Complex>& lambda, const std::vector<Complex>& gain) {
  const size_t N = lambda.size();
  const Rows real = p.linear("b_real", p.x), imag = p.linear("b_imag", p.x);
  Rows parts(p.T, std::vector<double>(2 * N));
  std::vector<Complex> h(N, 0.0);
  for (size_t t = 0; t < p.T; ++t)
    for (size_t n = 0; n < N; ++n) {
      h[n] = lambda[n] * h[n] + gain[n] * Complex(real[t][n], imag[t][n]);
      parts[t][n] = h[n].real();
      parts[t][N + n] = h[n].imag();
    }
  return p.linear("c", parts);
}
Rows lru(const Plain& p) {
  std::vector<Complex> lambda, gain;
  for (size_t n = 0; n < p.d; ++n) {
    lambda.push_back(std::exp(Complex(-std::exp(p.at("nu")[n]), std::exp(p.at("theta")[n]))));
    gain.emplace_back(std::exp(p.at("gamma_log")[n]));
  }
  return glu(p, diagonal(p, lambda, gain), plain::gelu_tanh);
}
Complex rate(const Plain& p, size_t n) { return {-std::exp(p.at("log_rate")[n]), p.at("frequency")[n]}; }
Rows s5(const Plain& p) {
  std::vector<Complex> lambda, gain;
  for (size_t n = 0; n < p.d / 2; ++n) {
    lambda.push_back(std::exp(rate(p, n) * std::exp(p.at("log_step")[n])));
    gain.push_back((lambda[n] - 1.0) / rate(p, n));
  }
  return glu(p, diagonal(p, lambda, gain), plain::gelu_tanh);
}
/// A system for each channel; C is c_real - i c_imag.
Rows s4d(const Plain& p) {
  const size_t N = 8;
  Rows y(p.T, std::vector<double>(p.d, 0.0));
  for (size_t c = 0; c < p.d; ++c)
    for (size_t n = c * N; n < (c + 1) * N; ++n) {
      const Complex lambda = std::exp(rate(p, n) * std::exp(p.at("log_step")[c])), hold = (lambda - 1.0) / rate(p, n);
      Complex h = 0;
      for (size_t t = 0; t < p.T; ++t) {
        h = lambda * h + hold * p.x[t][c];
        y[t][c] += (Complex(p.at("c_real")[n], -p.at("c_imag")[n]) * h).real();
      }
    }
  return glu(p, y, plain::gelu);
}

constexpr size_t kStates = 4;
Rows mamba(const Plain& p) {
  const Rows u = map(p.conv("conv", p.linear("u", p.x), true), silu), step = map(p.down_up("step", u, true, same), softplus);
  const Rows b = p.linear("b", u), c = p.linear("c", u);
  Rows y = u;
  for (size_t i = 0; i < 2 * p.d; ++i) {
    std::vector<double> h(kStates, 0.0);
    for (size_t t = 0; t < p.T; ++t) {
      y[t][i] = p.at("d")[i] * u[t][i];
      for (size_t n = 0; n < kStates; ++n) {
        h[n] = std::exp(-std::exp(p.at("a_log")[i * kStates + n]) * step[t][i]) * h[n] + step[t][i] * b[t][n] * u[t][i];
        y[t][i] += c[t][n] * h[n];
      }
    }
  }
  return p.linear("o", times(y, map(p.linear("z", p.x), silu)));
}

Rows qlstm_with(const Plain& p, double (*forget)(double f, double alpha), double alpha) {
  const Rows u = p.conv("conv", p.linear("u", p.x), true), f = p.linear("f", u, true);
  const Rows i = map(p.linear("i", u, true), sigmoid), o = map(p.linear("out", u, true), sigmoid);
  Rows h = times(i, u);
  for (size_t t = 1; t < p.T; ++t)
    for (size_t n = 0; n < h[t].size(); ++n) h[t][n] += forget(f[t][n], alpha) * h[t - 1][n];
  return p.linear("o", times(map(p.linear("side", p.x), plain::gelu), times(o, h)));
}
Rows qlstm(const Plain& p) {
  return qlstm_with(
      p, [](double f, double) { return sigmoid(f); }, 1);
}
Rows qlstm_reversed(const Plain& p) {
  return qlstm_with(
      p, [](double f, double alpha) { return std::pow(sigmoid(-f), std::max(0.0, alpha)); }, p.at("alpha")[0]);
}

TEST(StatedLayers, WithVectorStates) {
  const std::vector<plain::Stated> all{
      {"mamba", {{"state", "4"}}, mamba},
      {"rg-lru", {}, rg_lru},
      {"lru", {}, lru},
      {"s5", {}, s5},
      {"s4d", {}, s4d},
      {"qlstm", {}, qlstm},
      {"qlstm-reversed", {}, qlstm_reversed},
  };
  for (const plain::Stated& what : all) plain::expect_stated(what);
}

}  // namespace
}  // namespace isomer

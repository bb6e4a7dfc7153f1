// Presets of softmax and of linear attention against a second statement of their layers, by weights of every pair of tokens.
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
using plain::sigmoid;
using std::size_t;

double inverse(size_t, size_t, double sum) { return 1 / sum; }
double one(size_t, size_t, double) { return 1; }

Rows rope(const Rows& x, size_t H, double base = 10000, size_t less = 0) {
  const double K = double(x[0].size() / H - less);
  return plain::rotated(x, H, [&](size_t, size_t t, size_t n) { return double(t) * std::pow(base, -2 * double(n) / K); });
}

double logit(const Plain& p, const Heads& in, size_t h, size_t t, size_t s) {
  return dot(in.q, in.k, h, t, s, p.K) / std::sqrt(double(p.K));
}
Rows exponentials(const Plain& p, Heads in, const std::function<double(size_t, size_t, double)>& factor,
                  double clamp = HUGE_VAL) {
  in.q = rope(in.q, p.H), in.k = rope(in.k, p.H);
  return plain::weighted(
      in.v, p.H, [&](size_t h, size_t t, size_t s) { return std::exp(std::min(clamp, logit(p, in, h, t, s))); }, factor);
}

Rows softmax(const Plain& p) { return p.linear("o", exponentials(p, projected(p), inverse)); }
Rows softmax_detach(const Plain& p) {
  return p.linear("o", exponentials(p, projected(p), [](size_t, size_t, double sum) { return 1 / std::max(sum, 1.0); }));
}
Rows softmax_detach_gate(const Plain& p) {
  const Rows g = map(p.linear("out_gate", p.x, true), sigmoid);
  return p.linear("o", exponentials(
                           p, projected(p), [&](size_t h, size_t t, double sum) { return g[t][h] / (sum + 1e-4); }, 0.1));
}
Rows softmax_gate(const Plain& p) {
  const Rows g = map(p.linear("out_gate", p.x, true), sigmoid);
  return p.linear("o", exponentials(p, projected(p), [&](size_t h, size_t t, double) { return g[t][h] / double(t + 1); }));
}
/// The rms norm of sums over the number of tokens, with eps=0.5.
Rows softmax_count_norm(const Plain& p) {
  const Rows sums = exponentials(p, projected(p), [](size_t, size_t t, double) { return 1 / double(t + 1); });
  return p.linear("o", plain::normed(p, sums, p.H, 0.5, {.name = "norm"}));
}
Rows softmax_decay(const Plain& p) {
  const Heads in = projected(p);
  const Rows g = p.linear("decay", p.x, true);
  const auto weight = [&](size_t h, size_t t, size_t s) {
    double fade = 0;
    for (size_t r = s; r < t; ++r) fade += g[r][h] / 1024;
    return std::exp(logit(p, in, h, t, s) + fade);
  };
  return p.linear("o", plain::weighted(in.v, p.H, weight, [](size_t, size_t t, double) { return 1 / double(t + 1); }));
}

Rows fox_weights(const Plain& p, const Heads& in) {
  const Rows f = map(p.linear("forget", p.x, true), [](double x) { return -plain::softplus(-x); });
  const auto weight = [&](size_t h, size_t t, size_t s) {
    double fade = 0;
    for (size_t r = s + 1; r <= t; ++r) fade += f[r][h];
    return std::exp(logit(p, in, h, t, s) + fade);
  };
  return plain::weighted(in.v, p.H, weight, inverse);
}
Rows fox(const Plain& p) { return p.linear("o", fox_weights(p, projected(p))); }

/// Keys and values with alpha of the token before.
Rows shifted(const Plain& p, const std::string& name, const Rows& now) {
  const Rows alpha = map(p.linear(name + "_shift", p.x), sigmoid), past = plain::before(now);
  Rows out = now;
  for (size_t t = 0; t < p.T; ++t)
    for (size_t i = 0; i < now[t].size(); ++i) {
      const double a = alpha[t][i / (now[t].size() / p.H)];
      out[t][i] = a * past[t][i] + (1 - a) * now[t][i];
    }
  return out;
}
Heads shifted_heads(const Plain& p) {
  Heads in = projected(p);
  in.k = shifted(p, "k", in.k), in.v = shifted(p, "v", in.v);
  return in;
}
void norm_queries_and_keys(const Plain& p, Heads& in) {
  in.q = plain::normed(p, in.q, p.H, 1e-5, {.name = "q_norm"});
  in.k = plain::normed(p, in.k, p.H, 1e-5, {.name = "k_norm"});
}
Rows fox_read_out(const Plain& p, const Heads& in) {
  const Rows o = plain::normed(p, fox_weights(p, in), p.H, 1e-6, {.name = "norm"});
  return p.linear("o", plain::times(o, map(p.linear("gate", p.x), sigmoid)));
}
Rows fox_pro(const Plain& p) {
  Heads in = shifted_heads(p);
  norm_queries_and_keys(p, in);
  return fox_read_out(p, in);
}
Rows fox_pro_rope(const Plain& p) {
  Heads in = shifted_heads(p);
  norm_queries_and_keys(p, in);
  in.q = rope(in.q, p.H), in.k = rope(in.k, p.H);
  return fox_read_out(p, in);
}

/// The angles of Selective RoPE: x of length one in each head, unit rows times a factor, convolution, SiLU, gate, running sum.
Rows selective_angles(const Plain& p) {
  const size_t slice = p.d / p.H, half = p.K / 2;
  Rows x = p.x;
  for (auto& row : x)
    for (size_t h = 0; h < p.H; ++h) {
      double square = 0;
      for (size_t i = 0; i < slice; ++i) square += row[h * slice + i] * row[h * slice + i];
      for (size_t i = 0; i < slice; ++i) row[h * slice + i] /= std::sqrt(square);
    }
  Rows phase = p.head_linear("phase", x, p.H, half, false);
  const auto W = p.at("phase.weight");
  for (auto& row : phase)
    for (size_t r = 0; r < p.H * half; ++r) {
      double square = 0;
      for (size_t i = 0; i < slice; ++i) square += W[r * slice + i] * W[r * slice + i];
      row[r] *= p.at("phase_scale")[r / half] / std::sqrt(square);
    }
  phase = map(p.conv("phase_conv", phase), plain::silu);
  const Rows gate = map(p.linear("phase_gate", x, true), sigmoid);
  for (size_t t = 0; t < p.T; ++t)
    for (size_t r = 0; r < p.H * half; ++r) {
      phase[t][r] *= gate[t][r / half] * std::pow(500000.0, -2 * double(r % half) / double(p.K));
      if (t > 0) phase[t][r] += phase[t - 1][r];
    }
  return phase;
}
Rows fox_pro_selective(const Plain& p) {
  Heads in = shifted_heads(p);
  const Rows angles = selective_angles(p);
  const auto angle = [&](size_t h, size_t t, size_t n) { return angles[t][h * (p.K / 2) + n]; };
  in.q = plain::rotated(in.q, p.H, angle), in.k = plain::rotated(in.k, p.H, angle);
  norm_queries_and_keys(p, in);
  return fox_read_out(p, in);
}

double elu1(double x) { return x > 0 ? x + 1 : std::exp(x); }
Rows linear_elu(const Plain& p) {
  const Heads in = projected(p);
  return p.linear("o", divided(p, map(in.q, elu1), map(in.k, elu1), in.v, 1e-6));
}
Rows linear_elu_bias(const Plain& p) {
  const Heads in = projected(p, true);
  return p.linear("o", divided(p, map(in.q, elu1), map(in.k, elu1), in.v, 1e-6), true);
}
Rows cosformer(const Plain& p) {
  const Heads in = projected(p, true);
  const auto weight = [&](size_t h, size_t t, size_t s) {
    double sum = 0;
    for (size_t i = 0; i < p.K; ++i) sum += std::max(0.0, in.q[t][h * p.K + i]) * std::max(0.0, in.k[s][h * p.K + i]);
    return sum * std::cos(std::acos(-1.0) / 2 * (double(t) - double(s)) / 2048);
  };
  return p.linear("o", plain::weighted(in.v, p.H, weight, [](size_t, size_t, double sum) { return 1 / (sum + 1e-6); }), true);
}
Rows normalized_by(const Plain& p, double (*eta)(double), bool bias) {
  const Heads in = projected(p, bias);
  const Rows n = p.linear("eta", p.x, true);
  const auto weight = [&](size_t h, size_t t, size_t s) { return dot(in.q, in.k, h, t, s, p.K); };
  return p.linear("o", plain::weighted(in.v, p.H, weight, [&](size_t h, size_t t, double) { return 1 / eta(n[t][h]); }), bias);
}
Rows normalized(const Plain& p) { return normalized_by(p, std::exp, false); }
Rows normalized_softplus(const Plain& p) { return normalized_by(p, plain::softplus, true); }
Rows normalized_sigmoid(const Plain& p) { return normalized_by(p, sigmoid, false); }

Rows hedgehog_features(const Plain& p, const std::string& name, const Rows& x) {
  const Rows u = p.head_linear("features_" + name, x, p.H, p.K);
  Rows phi(p.T, std::vector<double>(2 * p.H * p.K));
  for (size_t t = 0; t < p.T; ++t)
    for (size_t h = 0; h < p.H; ++h) {
      double sum = 0;
      for (size_t i = 0; i < p.K; ++i) sum += std::exp(u[t][h * p.K + i]) + std::exp(-u[t][h * p.K + i]);
      for (size_t i = 0; i < p.K; ++i) {
        phi[t][2 * h * p.K + i] = std::exp(u[t][h * p.K + i]) / sum;
        phi[t][(2 * h + 1) * p.K + i] = std::exp(-u[t][h * p.K + i]) / sum;
      }
    }
  return phi;
}
Rows hedgehog(const Plain& p) {
  const Heads in = projected(p);
  return p.linear("o", divided(p, hedgehog_features(p, "q", in.q), hedgehog_features(p, "k", in.k), in.v, 1e-12));
}

constexpr size_t kProjections = 8, kFunctions = 4, kHidden = 64;
Rows luna_features(const Plain& p, const Rows& x) {
  const Rows u = p.head_linear("features", x, p.H, kProjections);
  const auto w1 = p.at("psi.hidden.weight"), b1 = p.at("psi.hidden.bias"), w2 = p.at("psi.output.weight");
  const auto b2 = p.at("psi.output.bias");
  Rows phi(p.T);
  for (size_t t = 0; t < p.T; ++t)
    for (const double number : u[t])
      for (size_t l = 0; l < kFunctions; ++l) {
        double psi = b2[l];
        for (size_t j = 0; j < kHidden; ++j)
          psi += w2[l * kHidden + j] * std::max(0.0, w1[l * kHidden + j] * number + b1[l * kHidden + j]);
        phi[t].push_back((std::max(0.0, psi) + 1e-6) / std::sqrt(double(kProjections)));
      }
  return phi;
}
Rows luna(const Plain& p) {
  const Heads in = projected(p);
  return p.linear("o", divided(p, luna_features(p, in.q), luna_features(p, in.k), in.v, 1e-6));
}

/// v̄ + s q C by its weights 1/n + (s/n) q·(k_j - k̄), over the keys that token t sees.
Rows inline_sums(const Plain& p, const Heads& in, bool causal) {
  Rows out(p.T, std::vector<double>(p.H * p.V, 0.0));
  for (size_t t = 0; t < p.T; ++t)
    for (size_t h = 0; h < p.H; ++h) {
      const size_t n = causal ? t + 1 : p.T;
      double mean = 0;
      for (size_t s = 0; s < n; ++s) mean += dot(in.q, in.k, h, t, s, p.K) / double(n);
      for (size_t s = 0; s < n; ++s) {
        const double weight = (1 + (dot(in.q, in.k, h, t, s, p.K) - mean) / std::sqrt(double(p.K))) / double(n);
        for (size_t j = 0; j < p.V; ++j) out[t][h * p.V + j] += weight * in.v[s][h * p.V + j];
      }
    }
  return out;
}
Rows residual_weights(const Plain& p, const Rows& mean, size_t taps) {
  return p.head_linear("residual_out", map(p.head_linear("residual_in", mean, p.H, p.d / p.H), plain::gelu), p.H, taps * p.V);
}
Rows inline_mean(const Plain& p) {
  const Heads in = projected(p, true);
  Rows o = inline_sums(p, in, true), mean = p.x;
  for (size_t t = 0; t < p.T; ++t)
    for (size_t i = 0; i < p.d; ++i) {
      double sum = 0;
      for (size_t s = 0; s <= t; ++s) sum += p.x[s][i];
      mean[t][i] = sum / double(t + 1);
    }
  const Rows r = residual_weights(p, mean, 3);
  for (size_t t = 0; t < p.T; ++t)
    for (size_t j = 0; j < 3 && j <= t; ++j)
      for (size_t i = 0; i < p.H * p.V; ++i) o[t][i] += r[t][i / p.V * 3 * p.V + j * p.V + i % p.V] * in.v[t - j][i];
  return p.linear("o", o, true);
}
Rows inline_image(const Plain& p) {
  const Heads in = projected(p, true);
  Rows o = inline_sums(p, in, false), mean = p.x;
  for (size_t t = 0; t < p.T; ++t)
    for (size_t i = 0; i < p.d; ++i) {
      mean[t][i] = 0;
      for (size_t s = 0; s < p.T; ++s) mean[t][i] += p.x[s][i] / double(p.T);
    }
  const Rows r = residual_weights(p, mean, 9);
  constexpr int rows = 3, columns = 4;
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; ++x)
      for (int tap = 0; tap < 9; ++tap) {
        const int from_y = y + tap / 3 - 1, from_x = x + tap % 3 - 1;
        if (from_y < 0 || from_y >= rows || from_x < 0 || from_x >= columns) continue;
        for (size_t i = 0; i < p.H * p.V; ++i)
          o[size_t(y * columns + x)][i] +=
              r[0][i / p.V * 9 * p.V + size_t(tap) * p.V + i % p.V] * in.v[size_t(from_y * columns + from_x)][i];
      }
  return p.linear("o", o, true);
}

/// γ^{t - s} q·k / √K without a denominator, a norm of each head and a SiLU gate.
Rows retnet_with(const Plain& p, size_t less) {
  Heads in = projected(p);
  in.q = rope(in.q, p.H, 10000, less), in.k = rope(in.k, p.H, 10000, less);
  const auto weight = [&](size_t h, size_t t, size_t s) {
    return logit(p, in, h, t, s) * std::pow(1 - std::exp2(-5.0 - double(h)), double(t - s));
  };
  const Rows o = plain::normed(p, plain::weighted(in.v, p.H, weight, one), p.H, 1e-5, {.layer = true});
  return p.linear("o", plain::times(o, map(p.linear("gate", p.x), plain::silu)));
}
Rows retnet(const Plain& p) { return retnet_with(p, 0); }
Rows retnet_ends(const Plain& p) { return retnet_with(p, 2); }

TEST(StatedLayers, OfAttention) {
  const std::vector<plain::Stated> all{
      {"softmax", {}, softmax},
      {"softmax", {{"denominator", "detach"}}, softmax_detach},
      {"softmax", {{"denominator", "detach"}, {"out_gate", "after"}, {"clamp", "0.1"}}, softmax_detach_gate},
      {"softmax-count", {{"decay", "true"}, {"position", "none"}}, softmax_decay},
      {"softmax-count", {{"norm", "rms"}, {"norm_eps", "0.5"}}, softmax_count_norm},
      {"softmax-gate", {}, softmax_gate},
      {"fox", {}, fox},
      {"fox", {{"pro", "true"}}, fox_pro},
      {"fox", {{"pro", "true"}, {"position", "rope"}}, fox_pro_rope},
      {"fox", {{"pro", "true"}, {"position", "selective-rope"}}, fox_pro_selective},
  };
  for (const plain::Stated& what : all) plain::expect_stated(what);
}

TEST(StatedLayers, OfLinearAttention) {
  const std::vector<plain::Stated> all{
      {"linear-elu", {}, linear_elu},
      {"linear-elu", {{"bias", "true"}}, linear_elu_bias},
      {"cosformer", {{"bias", "true"}}, cosformer},
      {"normalized", {}, normalized},
      {"normalized", {{"eta", "softplus"}, {"bias", "true"}}, normalized_softplus},
      {"normalized", {{"eta", "sigmoid"}}, normalized_sigmoid},
      {"hedgehog", {}, hedgehog},
      {"luna", {}, luna},
      {"inline", {}, inline_mean},
      {"inline", {{"causal", "false"}, {"residual", "image"}, {"rows", "3"}, {"columns", "4"}}, inline_image},
      {"retnet", {}, retnet, 8, 16},
      {"retnet", {{"rope_ends", "true"}}, retnet_ends, 8, 16},
  };
  for (const plain::Stated& what : all) plain::expect_stated(what);
}

}  // namespace
}  // namespace isomer

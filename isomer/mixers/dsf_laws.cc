// The laws with a state of fixed size as dynamical systems.
#include <algorithm>
#include <limits>

#include "isomer/mixers/dsf_source.h"

namespace isomer::dsf_detail {

namespace {

/// h before the first token: the state's column of each channel in the first K features.
void start_from(Dsf& system, const Vector& state) {
  const Index K = Index(state.size()) / system.channels;
  for (Index c = 0; c < system.channels; ++c)
    for (Index i = 0; i < K; ++i) system.initial[c * system.features + i] = state[i * system.channels + c];
}

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// x / √(Σx² + 1e-6)
Vector unit(Vector x) {
  const double norm = std::sqrt(dot(x, x) + 1e-6);
  for (double& e : x) e /= norm;
  return x;
}

/// InLine (Han et al. 2024): o = (1/n) (s q Σ kvᵀ + (1 − (s/n) q·Σk) Σv). One more feature holds Σv, and η is the count n.
Dsf realise_subtract(const Source& from) {
  const Index K = from.size("K"), V = from.size("V");
  Dsf system = from.blank(from.sequence.length, V, K + 1);
  start_from(system, from.state("initial_state", K * V));
  const Vector values = from.state("initial_value_sum", V);
  for (Index c = 0; c < V; ++c) system.initial[c * (K + 1) + K] = values[c];
  double count = from.state("initial_count", 1, Source::Heads::none)[0];
  Vector keys = from.state("initial_norm", K), eta;
  for (Index t = 0; t < system.T; ++t) {
    const Vector q = from.row("q", t), k = from.row("k", t);
    DsfToken& token = system.token(t, 0);
    count += 1;
    for (Index i = 0; i < K; ++i) {
      keys[i] += k[i];
      token.B[i] = k[i];
      token.C[i] = from.scale() * q[i];
    }
    token.B[K] = 1;
    token.C[K] = 1 - from.scale() * dot(q, keys) / count;
    eta.push_back(count);
  }
  normalise(system, eta, from);
  return system;
}

/// mLSTM's scale m_t = max(f_t + m_{t−1}, i_t), by which its state and norm are divided.
struct RunningMax {
  bool used;
  double m;

  /// Turns the logarithms of the gates into factors.
  void scale(double& keep, double& add) {
    const double next = used ? std::max(keep + m, add) : 0.0;
    keep = std::exp(keep + m - next);
    add = std::exp(add - next);
    m = next;
  }
};

/// Read before the token is written: y_t = C_t h_{t−1} + D_t u_t. One more feature holds the last value until the next token
/// writes it, so that the state after a token is what the output reads: Λ_t = [diag(a_{t−1}), k_{t−1}; 0, 0].
Dsf realise_read_before(const Source& from) {
  const Index K = from.size("K"), V = from.size("V");
  Dsf system = from.blank(from.sequence.length, V, K + 1);
  start_from(system, from.state("initial_state", K * V));
  for (Index t = 0; t < system.T; ++t) {
    const Vector q = from.row("q", t), k = from.row("k", t);
    DsfToken& token = system.token(t, 0);
    token.left.assign(std::size_t(K + 1), Complex(0));
    token.right.assign(std::size_t(K + 1), Complex(0));
    token.right[K] = 1;
    token.decay[K] = 0;
    token.B[K] = 1;
    for (Index i = 0; i < K; ++i) {
      if (t > 0) {
        token.decay[i] = std::exp(from.row("log_decay", t - 1)[i]);
        token.left[i] = from.row("k", t - 1)[i];
      }
      token.C[i] = from.scale() * q[i];
      if (from.given("bonus"))
        token.D += from.scale() * q[i] * k[i] * from.tensor("bonus").data<double>()[from.place.head * K + i];
    }
  }
  return system;
}

Dsf realise_s6(const Source& from) {
  const Index C = from.size("C"), N = from.size("N");
  Dsf system = from.blank(from.sequence.length, C, N, C);
  const Vector state = from.state("initial_state", C * N, Source::Heads::none);
  std::copy(state.begin(), state.end(), system.initial.begin());
  const double* rates = from.tensor("a").data<double>();
  for (Index t = 0; t < system.T; ++t) {
    const Vector step = from.plain_row("step", t), b = from.plain_row("b", t), c = from.plain_row("c", t);
    for (Index g = 0; g < C; ++g) {
      DsfToken& token = system.token(t, g);
      if (from.given("d")) token.D = from.tensor("d").data<double>()[g];
      for (Index i = 0; i < N; ++i) {
        token.decay[i] = std::exp(step[g] * rates[g * N + i]);
        token.B[i] = step[g] * b[i];
        token.C[i] = c[i];
      }
    }
  }
  return system;
}

}  // namespace

Dsf realise_scalar_decay(const Source& from) {
  const std::string normaliser = from.text("normaliser", "none");
  if (normaliser == "subtract") return realise_subtract(from);
  const Index K = from.size("K"), V = from.size("V");
  const double eps = read_number(from.settings, "eps", 0);
  Dsf system = from.blank(from.sequence.length, V, K);
  start_from(system, from.state("initial_state", K * V));
  Vector norm = from.state("initial_norm", K), eta;
  RunningMax max{normaliser == "max", 0};
  const bool fresh = !from.given("initial_state") && !from.given("initial_norm") && !from.given("initial_max");
  if (max.used) max.m = fresh ? -std::numeric_limits<double>::infinity() : from.state("initial_max", 1)[0];
  for (Index t = 0; t < system.T; ++t) {
    const Vector q = from.row("q", t), k = from.row("k", t);
    double keep = from.number("log_decay", t, 0), add = from.number("log_input", t, 0);
    max.scale(keep, add);
    DsfToken& token = system.token(t, 0);
    for (Index i = 0; i < K; ++i) {
      norm[i] = keep * norm[i] + add * k[i];
      token.decay[i] = keep;
      token.B[i] = add * k[i];
      token.C[i] = from.scale() * q[i];
    }
    const double den = from.scale() * dot(q, norm), one = std::exp(-max.m);
    eta.push_back(max.used ? std::max(std::abs(den), one) + eps * one : den + eps);
  }
  if (normaliser != "none") normalise(system, eta, from);
  return system;
}

Dsf realise_channel_decay(const Source& from) {
  if (from.text("read", "after") == "before") return realise_read_before(from);
  const Index K = from.size("K"), V = from.size("V");
  Dsf system = from.blank(from.sequence.length, V, K);
  start_from(system, from.state("initial_state", K * V));
  for (Index t = 0; t < system.T; ++t) {
    const Vector q = from.row("q", t), k = from.row("k", t), decay = from.row("log_decay", t);
    DsfToken& token = system.token(t, 0);
    for (Index i = 0; i < K; ++i) {
      token.decay[i] = std::exp(decay[i]);
      token.B[i] = k[i];
      token.C[i] = from.scale() * q[i];
    }
  }
  return system;
}

/// Λ = diag(a) − β k (a ∘ k)ᵀ, B = β k; low rank: Λ = diag(a) + b aᵀ, B = k.
Dsf realise_delta(const Source& from) {
  const Index K = from.size("K"), V = from.size("V");
  const bool l2norm = read_bool(from.settings, "l2norm", false), low_rank = from.given("a");
  const bool by_key = from.given("log_decay") && from.tensor("log_decay").shape().size() == 4;
  Dsf system = from.blank(from.sequence.length, V, K);
  start_from(system, from.state("initial_state", K * V));
  for (Index t = 0; t < system.T; ++t) {
    Vector q = from.row("q", t), k = from.row("k", t), decay(std::size_t(K), by_key ? 0.0 : from.number("log_decay", t, 0));
    if (by_key) decay = from.row("log_decay", t);
    if (l2norm) q = unit(q), k = unit(k);
    const double beta = from.number("beta", t, 1);
    const Vector left = low_rank ? from.row("b", t) : k, right = low_rank ? from.row("a", t) : k;
    DsfToken& token = system.token(t, 0);
    for (Index i = 0; i < K; ++i) {
      token.decay[i] = std::exp(decay[i]);
      token.left.emplace_back(low_rank ? left[i] : -beta * left[i]);
      token.right.push_back(low_rank ? right[i] : right[i] * token.decay[i]);
      token.B[i] = low_rank ? k[i] : beta * k[i];
      token.C[i] = from.scale() * q[i];
    }
  }
  return system;
}

Dsf realise_scan(const Source& from) {
  if (from.given("step")) return realise_s6(from);
  const Index N = from.size("N");
  Dsf system = from.blank(from.sequence.length, N, 1, N);
  const Vector real = from.state("initial_state", N, Source::Heads::none);
  const Vector imag = from.state("initial_imag", N, Source::Heads::none);
  for (Index i = 0; i < N; ++i) system.initial[i] = {real[i], imag[i]};
  for (Index t = 0; t < system.T; ++t) {
    const Vector decay = from.plain_row("log_decay", t);
    const Vector angle = from.given("angle") ? from.plain_row("angle", t) : Vector(std::size_t(N), 0.0);
    for (Index i = 0; i < N; ++i) {
      DsfToken& token = system.token(t, i);
      token.decay[0] = std::polar(std::exp(decay[i]), angle[i]);
      token.B[0] = token.C[0] = 1;
    }
  }
  return system;
}

}  // namespace isomer::dsf_detail

// scalar_decay as a dynamical system.
#include <algorithm>
#include <limits>

#include "isomer/laws/dsf.h"
#include "isomer/laws/scalar_decay/scalar_decay_law.h"

namespace isomer {

namespace {
using namespace dsf_detail;

/// InLine (Han et al. 2024): o = (1/n) (s q Σ kvᵀ + (1 − (s/n) q·Σk) Σv). One more feature holds Σv, and η is the count n.
Dsf realise_subtract(const DsfSource& from) {
  const Index K = from.size("K"), V = from.size("V");
  Dsf system = from.blank(from.sequence.length, V, K + 1);
  start_from(system, from.state("initial_state", K * V));
  const Vector values = from.state("initial_value_sum", V);
  for (Index c = 0; c < V; ++c) system.initial[c * (K + 1) + K] = values[c];
  double count = from.state("initial_count", 1, DsfSource::Heads::none)[0];
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
}  // namespace

Dsf BoundScalarDecay::system(const DsfSource& from) const {
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

}  // namespace isomer

// delta as a dynamical system.
#include "isomer/laws/delta/delta_law.h"
#include "isomer/laws/dsf.h"

namespace isomer {

namespace {
using namespace dsf_detail;

/// x / √(Σx² + 1e-6)
Vector unit(Vector x) {
  const double norm = std::sqrt(dot(x, x) + 1e-6);
  for (double& e : x) e /= norm;
  return x;
}
}  // namespace

/// Λ = diag(a) − β k (a ∘ k)ᵀ, B = β k; low rank: Λ = diag(a) + b aᵀ, B = k.
Dsf BoundDelta::system(const DsfSource& from) const {
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

}  // namespace isomer

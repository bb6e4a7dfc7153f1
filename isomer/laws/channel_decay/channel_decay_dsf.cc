// channel_decay as a dynamical system.
#include "isomer/laws/channel_decay/channel_decay_law.h"
#include "isomer/laws/dsf.h"

namespace isomer {

namespace {
using namespace dsf_detail;

/// Read before the token is written: y_t = C_t h_{t−1} + D_t u_t. One more feature holds the last value until the next token
/// writes it, so that the state after a token is what the output reads: Λ_t = [diag(a_{t−1}), k_{t−1}; 0, 0].
Dsf realise_read_before(const DsfSource& from) {
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
}  // namespace

Dsf BoundChannelDecay::system(const DsfSource& from) const {
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

}  // namespace isomer

// kda: S_t = (I - b_t k_t k_tᵀ) Diag(a_t) S_{t-1} + b_t k_t v_tᵀ; log a = -e^A softplus(x W1 W2 + dt), of each key channel, with
// A of the head; low rank, as is the sigmoid gate of the RMS norm. q, k, v through convolutions and SiLU, q and k of length one.
#include "isomer/mixers/parts.h"

namespace isomer::preset::kda {

namespace {
void build(Builder& m) {
  m.positions({"none", "learned", "rope", "selective-rope"});
  const auto [H, K, V] = m.head_sizes({});
  const Index rank = m.size("gate_rank", V, "rank of the projections to decays and to the gate");
  const bool gate_bias = m.flag("gate_bias", true, "a bias of the gate");
  const double eps = parts::fla_norm_eps(m);
  const parts::DeltaInputs in = parts::delta_inputs(m, {H, K, V});
  const Value z = m.low_rank("step", m.x(), {.rank = rank, .size = H * K, .up = {.bias = true, .bias_init = parts::steps()}});
  const Value log_decay = parts::decay_of_steps(m, m.heads(m.map(Unary::softplus, z), H), H, 1);
  Value o = m.delta({.q = in.q, .k = in.k, .v = in.v, .beta = in.beta, .log_decay = log_decay}, {.l2norm = true});
  o = m.normalise("norm", o, {.kind = Norm::rms, .eps = eps, .weight = true, .shared = true});
  const Value gate = m.low_rank("gate", m.x(), {.rank = rank, .size = H * V, .up = {.bias = gate_bias}});
  parts::output(m, m.gate(Unary::sigmoid, gate, m.flat(o)));
}
}  // namespace

extern const Preset kda{.name = "kda",
                        .source = "Kimi Team 2025, Kimi Linear (arXiv 2510.26692), section 3",
                        .summary = "delta rule with a decay of each key channel",
                        .build = build};

}  // namespace isomer::preset::kda

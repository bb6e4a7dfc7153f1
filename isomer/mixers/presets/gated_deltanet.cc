// gated-deltanet: S_t = a_t (I - b_t k_t k_tᵀ) S_{t-1} + b_t k_t v_tᵀ; a = exp(-e^A softplus(x W + dt)), b = sigmoid(x W) (twice
// that for negative eigenvalues). q, k, v through convolutions and SiLU, q and k of length one, gated RMS norm.
#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::preset::gated_deltanet {

namespace {
void build(Builder& m) {
  m.positions({"none", "learned", "rope", "selective-rope"});
  const Index d = m.width();
  const auto [H, K, V] = m.head_sizes({.key_total = 3 * d / 4, .value_total = 3 * d / 2});
  const Index N = m.size("value_heads", H, "heads of values; each key serves value_heads / heads of them");
  require(N % H == 0, m.preset(), "expected value_heads that heads=", H, " divides, got ", N);
  const double eps = parts::fla_norm_eps(m);
  const parts::DeltaInputs in = parts::delta_inputs(m, {H, K, V}, N);
  const Value step = m.linear("step", m.x(), N, {.bias = true, .bias_init = parts::steps()});
  const Value log_decay = parts::decay_of_steps(m, m.heads(m.map(Unary::softplus, step), N), N, 1e-4);
  Value o = m.delta({.q = in.q, .k = in.k, .v = in.v, .beta = in.beta, .log_decay = log_decay}, {.l2norm = true});
  o = m.normalise("norm", o, {.kind = Norm::rms, .eps = eps, .weight = true, .shared = true});
  parts::output(m, parts::gated(m, Unary::silu, o));
}
}  // namespace

extern const Preset gated_deltanet{.name = "gated-deltanet",
                                   .source = "Yang et al. 2024, Gated DeltaNet (arXiv 2412.06464), eq. 10",
                                   .summary = "delta rule with a decay of each head",
                                   .build = build};

}  // namespace isomer::preset::gated_deltanet

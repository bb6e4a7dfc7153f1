// deltanet: S_t = (I - b_t k_t k_tᵀ) S_{t-1} + b_t k_t v_tᵀ, b = sigmoid(x W) (twice that for negative eigenvalues). q, k, v
// through convolutions and SiLU, q and k of length one, RMS norm of each head.
#include "isomer/mixers/parts.h"

namespace isomer::preset::deltanet {

namespace {
void build(Builder& m) {
  m.positions({"none", "learned", "rope", "selective-rope"});
  const auto [H, K, V] = m.head_sizes({});
  const bool gate = m.flag("gate", false, "a SiLU gate on the output");
  const double eps = parts::fla_norm_eps(m);
  const parts::DeltaInputs in = parts::delta_inputs(m, {H, K, V});
  Value o = m.delta({.q = in.q, .k = in.k, .v = in.v, .beta = in.beta}, {.l2norm = true});
  o = m.normalise("norm", o, {.kind = Norm::rms, .eps = eps, .weight = true, .shared = true});
  parts::output(m, gate ? parts::gated(m, Unary::silu, o) : o);
}
}  // namespace

extern const Preset deltanet{.name = "deltanet",
                             .source = "Yang et al. 2024, DeltaNet (arXiv 2406.06484), eq. 1",
                             .summary = "the delta rule: what a key holds is overwritten",
                             .build = build};

}  // namespace isomer::preset::deltanet

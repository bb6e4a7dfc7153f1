// normalized: y_i = q_iᵀ Σ_{j ≤ i} k_j v_jᵀ / eta(u_i), eta = exp(n), softplus(n) or sigmoid(n) of n = w·u + b, one number for
// each head.
#include <string>

#include "isomer/mixers/parts.h"

namespace isomer::preset::normalized {

namespace {
void build(Builder& m) {
  m.positions({"none", "learned", "rope", "selective-rope"});
  const auto [H, K, V] = m.head_sizes({});
  const std::string eta = m.choice("eta", {"exp", "softplus", "sigmoid"}, "the denominator's function");
  const graph::Linear in{.bias = m.flag("bias", false, "biases of q, k, v and the output, as in the authors' code")};
  const Value q = m.positioned(parts::project(m, "q", H, K, in)), k = m.positioned(parts::project(m, "k", H, K, in));
  const Value n = m.heads(m.linear("eta", m.x(), H, {.bias = true}), H);
  // 1 / sigmoid(n) = 1 + exp(-n) does not overflow where sigmoid is 0.
  Value factor = eta == "softplus" ? m.map(Unary::reciprocal, m.map(Unary::softplus, n)) : m.map(Unary::exp, m.affine(n, -1));
  if (eta == "sigmoid") factor = m.affine(factor, 1, 1);
  const Value o = m.scalar_decay({.q = q, .k = k, .v = parts::project(m, "v", H, V, in)}, {.scale = 1});
  parts::output(m, m.multiply(factor, o), in);
}
}  // namespace

extern const Preset normalized{.name = "normalized",
                               .source = "Sieber et al. 2024 (arXiv 2405.15731), eq. 21",
                               .summary = "linear attention over a denominator of the current token",
                               .build = build};

}  // namespace isomer::preset::normalized

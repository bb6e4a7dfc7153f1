// gla: S_t = Diag(a_t) S_{t-1} + k_t v_tᵀ, a = sigmoid(x W1 W2 + b)^(1/16) of each key channel by rank 16; RMS norm of each head,
// SiLU gate.
#include "isomer/mixers/parts.h"

namespace isomer::preset::gla {

namespace {
void build(Builder& m) {
  m.positions({"none", "learned", "rope", "selective-rope"});
  const auto [H, K, V] = m.head_sizes({.key_total = m.width() / 2});
  const Index rank = m.size("gate_rank", 16, "rank of the projection to decays");
  const double tau = m.number("gate_power", 16, "decays are sigmoids to the power of 1 / gate_power");
  const Index conv = m.size("conv", 0, "tokens of a short convolution with SiLU on q, k and v; 0: none", 0);
  const double eps = parts::fla_norm_eps(m);
  const auto in = [&, H = H](const char* name, Index size) {
    const Value x = m.linear(name, m.x(), H * size);
    if (conv == 0) return m.heads(x, H);
    return m.heads(m.named(name, parts::short_convolution(m, std::string(name) + "_conv", x, conv)), H);
  };
  const Value q = m.positioned(in("q", K)), k = m.positioned(in("k", K)), v = in("v", V);
  const Value z = m.low_rank("decay", m.x(), {.rank = rank, .size = H * K, .up = {.bias = true}});
  const Value log_decay = m.named("log_decay", m.heads(m.affine(m.map(Unary::log_sigmoid, z), 1 / tau), H));
  Value o = m.channel_decay({.q = q, .k = k, .v = v, .log_decay = log_decay});
  o = m.normalise("norm", o, {.kind = Norm::rms, .eps = eps, .weight = true, .shared = true});
  parts::output(m, parts::gated(m, Unary::silu, o));
}
}  // namespace

extern const Preset gla{.name = "gla",
                        .source = "Yang et al. 2023, Gated Linear Attention (arXiv 2312.06635), section 4",
                        .summary = "linear attention with a decay of each key channel",
                        .build = build};

}  // namespace isomer::preset::gla

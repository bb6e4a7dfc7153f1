// metala: x through a convolution and SiLU; a = sigmoid(x Wa)^(1/16), k = 1 - a, S_t = Diag(a_t) S_{t-1} + k_t v_tᵀ;
// self-augmentation o_t += sigmoid((q_t·(w∘k_t)) v_t), w = 0 at the start; layer norm of each head without parameters, SiLU gate.
// Options take back the key (with_key), the augmentation and the convolution.
#include "isomer/mixers/parts.h"

namespace isomer::preset::metala {

namespace {
void build(Builder& m) {
  m.positions({"none", "learned", "rope", "selective-rope"});
  const auto [H, K, V] = m.head_sizes({.key_total = m.width() / 2});
  const Index conv = m.size("conv", 4, "tokens of the convolution on the input; 0: none", 0);
  const bool with_key = m.flag("with_key", false, "keys of their own, k = x Wk");
  const bool augment = m.flag("augment", true, "self-augmentation");
  const double eps = parts::norm_eps(m, 1e-5, "the default is that of the authors' code");
  const Value x = conv > 0 ? m.named("c", parts::short_convolution(m, "conv", m.x(), conv)) : m.x();
  const Value log_decay = m.heads(m.affine(m.map(Unary::log_sigmoid, m.linear("a", x, H * K)), 1.0 / 16), H);
  (void)m.named("log_decay", log_decay);
  Value q = m.heads(m.linear("q", x, H * K), H);
  Value k = with_key ? m.heads(m.linear("k", x, H * K), H) : m.named("k", m.map(Unary::one_minus_exp, log_decay));
  const Value v = m.heads(m.linear("v", x, H * V), H);
  q = m.positioned(q), k = m.positioned(k);
  Value o = m.channel_decay({.q = q, .k = k, .v = v, .log_decay = log_decay});
  if (augment) {
    // q·(w∘k) is a projection of q∘k to one number.
    const Value self = m.head_linear("augment", m.multiply(q, k), 1, {.weight = graph::constant(0)});
    // The norm takes the mean, so that sigmoid(z) = 1/2 + tanh(z/2)/2 may do without its 1/2, which would cost digits.
    const Value half = m.affine(m.multiply(self, v), 0.5);
    o = m.add(o, m.affine(m.map(Unary::tanh, half), 0.5));
  }
  o = m.flat(m.normalise("", o, {.kind = Norm::layer, .eps = eps}));
  parts::output(m, m.gate(Unary::silu, m.linear("gate", x, H * V, {.bias = true}), o));
}
}  // namespace

extern const Preset metala{.name = "metala",
                           .source = "Chou et al. 2024, MetaLA (arXiv 2411.10741), eq. A31-A37",
                           .summary = "linear attention without keys: what is written is what is forgotten",
                           .build = build};

}  // namespace isomer::preset::metala

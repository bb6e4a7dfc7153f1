// hgrn2: S_t = Diag(f_t) S_{t-1} + (1 - f_t) i_tᵀ, f = lb + (1 - lb) sigmoid(x W), q = SiLU(x W), RMS norm over all channels. The
// bounds of all layers come from one tensor of the model, [layers, H K]: lb_l is the sum of rows 1 … l of its softmax over
// layers. So it is 0 in the first layer, rises with the layers, and starts at l / layers.
#include "isomer/mixers/parts.h"

namespace isomer::preset::hgrn2 {

namespace {
void build(Builder& m) {
  m.positions({"none", "learned", "rope", "selective-rope"});
  const auto [H, K, V] = m.head_sizes({});
  const double eps = parts::fla_norm_eps(m);
  const Value z = m.linear("f", m.x(), H * K);
  Value log_decay, k;
  if (m.place().layer == 0) {
    log_decay = m.heads(m.map(Unary::log_sigmoid, z), H);
    k = m.map(Unary::one_minus_exp, log_decay);
  } else {
    const Index layer = m.place().layer, layers = m.place().layers;
    const Value all = m.shared_parameter("bounds", layers, H * K, graph::constant(0));
    const Value bound = m.named(
        "lb", m.add_node({.work = graph::ShareOfHeads{.begin = 1, .end = layer + 1}, .inputs = {all.node}, .size = H * K}));
    const Value share = m.map(Unary::sigmoid, z), above = m.affine(bound, -1, 1);
    const Value f = m.add(bound, m.multiply(above, share));
    log_decay = m.heads(m.map(Unary::log, m.named("f", f)), H);
    k = m.heads(m.affine(f, -1, 1), H);
  }
  const Value q = m.named("q", m.heads(m.map(Unary::silu, m.linear("q", m.x(), H * K)), H));
  const Value o = m.channel_decay({.q = m.positioned(q),
                                   .k = m.positioned(m.named("k", k)),
                                   .v = parts::project(m, "v", H, V),
                                   .log_decay = m.named("log_decay", log_decay)});
  parts::output(m, m.normalise("norm", m.flat(o), {.kind = Norm::rms, .eps = eps, .weight = true}));
}
}  // namespace

extern const Preset hgrn2{.name = "hgrn2",
                          .source = "Qin et al. 2024, HGRN2 (arXiv 2404.07904), eq. 3-5",
                          .summary = "forget gates with a lower bound; keys are what is forgotten",
                          .build = build};

}  // namespace isomer::preset::hgrn2

// retnet: S_t = g_h S_{t-1} + k_t v_tᵀ, g_h = 1 - 2^(-5-h), rotary positions, a norm of each head without parameters, SiLU gate;
// values of twice the width.
#include <cmath>
#include <string>

#include "isomer/mixers/parts.h"

namespace isomer::preset::retnet {

namespace {
void build(Builder& m) {
  m.positions({"rope", "none", "learned", "selective-rope"});
  const auto [H, K, V] = m.head_sizes({.value_total = 2 * m.width()});
  const std::string norm = m.choice("norm", {"layer", "rms"}, "norm of each head");
  const double eps = parts::norm_eps(m, norm == "rms" ? 1e-6 : 1e-5, "the default is torchscale's, of either norm");
  const bool weight = m.flag("norm_weight", false, "norm: a weight for each channel of a head, as in flash-linear-attention");
  m.rope_to_the_end(K);
  const Value q = m.positioned(parts::project(m, "q", H, K)), k = m.positioned(parts::project(m, "k", H, K));
  std::vector<double> decays;
  for (Index h = 0; h < H; ++h) decays.push_back(std::log1p(-std::exp2(-5.0 - double(h))));
  const graph::Init fixed{.kind = graph::Init::Kind::list, .values = decays};
  const Value log_decay = m.named("log_decay", m.parameter("log_decay", H, 1, fixed, graph::Training::fixed));
  Value o = m.scalar_decay({.q = q, .k = k, .v = parts::project(m, "v", H, V), .log_decay = log_decay});
  const graph::Normalise each{.kind = norm == "rms" ? Norm::rms : Norm::layer, .eps = eps, .weight = weight, .shared = weight};
  o = m.normalise(weight ? "norm" : "", o, each);
  parts::output(m, parts::gated(m, Unary::silu, o));
}
}  // namespace

extern const Preset retnet{.name = "retnet",
                           .source = "Sun et al. 2023, RetNet (arXiv 2307.08621), eq. 5-8",
                           .summary = "linear attention with a fixed decay of each head",
                           .build = build};

}  // namespace isomer::preset::retnet

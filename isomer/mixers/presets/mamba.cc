// mamba: the S6 scan. h_t = exp(step_t a) h_{t-1} + step_t x_t b_tᵀ, y_t = h_t c_t + d x_t; step = softplus(x W), low rank; a =
// -1 … -N at the start. Convolution and SiLU before, SiLU gate after.
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::preset::mamba {

namespace {
void build(Builder& m) {
  using graph::Init;
  m.positions({"none", "learned"});
  const Index C = m.size("expand", 2, "channels of the scan, in widths") * m.width();
  const Index N = m.size("state", 16, "state of each channel");
  const Index rank = m.size("step_rank", (m.width() + 15) / 16, "rank of the projection to steps");
  const Index conv = m.size("conv", 4, "tokens of the short convolution; 0: SiLU alone", 0);
  const double norm_eps =
      m.number("scan_norm_eps", 0, "not 0: RMS norms of steps, b and c, which add it under the root (FalconMamba)");
  require(norm_eps >= 0, "scan_norm_eps", "expected a number >= 0, got ", norm_eps);
  std::optional<graph::Normalise> norm;
  if (norm_eps > 0) norm = {.kind = Norm::rms, .eps = norm_eps};
  const auto normed = [&](Value in) { return norm ? m.normalise("", in, *norm) : in; };
  const Value u = m.named("u", parts::short_convolution(m, "conv", m.linear("u", m.x(), C), conv, true));
  const double bound = 1 / std::sqrt(double(rank));
  const Value step = m.low_rank(
      "step", u,
      {.rank = rank,
       .size = C,
       .up = {.bias = true, .weight = {.kind = Init::Kind::uniform, .a = -bound, .b = bound}, .bias_init = parts::steps()},
       .norm = norm});
  const Value a = m.affine(m.map(Unary::exp, m.parameter("a_log", C, N, {.kind = Init::Kind::log_range})), -1);
  const Value o = m.scan_s6({.x = u,
                             .step = m.named("step", m.map(Unary::softplus, step)),
                             .a = m.named("a", a),
                             .b = normed(m.linear("b", u, N)),
                             .c = normed(m.linear("c", u, N)),
                             .d = m.named("d", m.parameter("d", 1, C, graph::constant(1)))});
  parts::output(m, m.gate(Unary::silu, m.linear("z", m.x(), C), o));
}
}  // namespace

extern const Preset mamba{.name = "mamba",
                          .source = "Gu & Dao 2023, Mamba (arXiv 2312.00752), algorithm 2",
                          .summary = "selective state space: steps, inputs and outputs of the scan depend on the token",
                          .build = build};

}  // namespace isomer::preset::mamba

// mamba2: S_t = a_t S_{t-1} + b_t (step_t x_t)ᵀ, y_t = S_tᵀ c_t + d x_t; step = softplus(x W + dt), a = exp(-step e^A), A = log
// U(1, 16). b and c serve all heads. Convolution and SiLU on x, b and c; RMS norm of y times SiLU(z).
#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::preset::mamba2 {

namespace {
void build(Builder& m) {
  m.positions({"none", "learned"});
  const Index inner = m.size("expand", 2, "channels of values, in widths") * m.width();
  const Index H = m.size("heads", 4, "heads");
  require(inner % H == 0, m.preset(), "expected heads that divide ", inner, ", got ", H);
  const Index N = m.size("key", 128, "size of the state for each channel");
  const Index G = m.size("groups", 1, "how many b and c there are; each serves heads / groups heads");
  require(H % G == 0, m.preset(), "expected groups that divide heads=", H, ", got ", G);
  const Index conv = m.size("conv", 4, "tokens of the short convolution; 0: SiLU alone", 0);
  const double eps = parts::norm_eps(m, 1e-5, "the default is that of mamba_ssm");
  const Value all = m.named("xbc", parts::short_convolution(m, "conv", m.linear("xbc", m.x(), inner + 2 * G * N), conv, true));
  const Value x = m.heads(m.slice(all, 0, inner), H);
  const auto group = [&](Index begin) {
    const Value part = m.slice(all, begin, G * N);
    return G > 1 ? m.heads(part, G) : part;
  };
  const Value b = group(inner), c = group(inner + G * N);
  const Value dt = m.linear("step", m.x(), H, {.bias = true, .bias_init = parts::steps()});
  const Value step = m.named("step", m.heads(m.map(Unary::softplus, dt), H));
  const Value log_decay = parts::decay_of_steps(m, step, H, 1);
  const Value v = m.named("v", m.multiply(x, step));
  Value o = m.scalar_decay({.q = c, .k = b, .v = v, .log_decay = log_decay}, {.scale = 1});
  o = m.flat(m.add(o, m.multiply(x, m.parameter("d", H, 1, graph::constant(1)))));
  o = m.gate(Unary::silu, m.linear("z", m.x(), inner), o);
  // Of each group by itself.
  parts::output(m, m.flat(m.normalise("norm", m.heads(o, G), {.kind = Norm::rms, .eps = eps, .weight = true})));
}
}  // namespace

extern const Preset mamba2{.name = "mamba2",
                           .source = "Dao & Gu 2024, Mamba-2 (arXiv 2405.21060), section 7",
                           .summary = "state space duality: scalar decays from steps, one key for all heads",
                           .build = build};

}  // namespace isomer::preset::mamba2

// mamba2: S_t = a_t S_{t-1} + b_t (step_t x_t)ᵀ, y_t = S_tᵀ c_t + d x_t; step = softplus(x W + dt), a = exp(-step e^A), A = log
// U(1, 16). b and c serve all heads. Convolution and SiLU on x, b and c; RMS norm of y times SiLU(z). Softmax attention to the
// same input may stand beside it (Falcon-H1, arXiv 2507.22448): both outputs are added.
#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::preset::mamba2 {

namespace {
struct Beside {
  Index heads, key, kv_heads;
};

Beside read_attention(Builder& m) {
  const std::string position = m.positions({"none", "learned", "rope"});
  const Index H = m.size("attention", 0, "heads of softmax attention beside it; 0: none", 0);
  const Index K = m.size("attention_key", std::max<Index>(1, m.width() / std::max<Index>(1, H)), "size of its heads");
  const Index G = m.size("attention_kv_heads", std::max<Index>(1, H), "its heads of keys and values");
  m.only_with(H > 0, "attention", {"attention_key", "attention_kv_heads"});
  require(H % G == 0, m.preset(), "expected attention_kv_heads that divide attention=", H, ", got ", G);
  require(H > 0 || position != "rope", m.preset(), "position=rope needs attention; attention=4 is the nearest that works");
  m.rope_of_models(K);
  return {H, K, G};
}

/// Ends the mixer.
void output(Builder& m, const Beside& beside, Value y) {
  if (beside.heads == 0) return parts::output(m, y);
  const auto [H, K, G] = beside;
  const Value q = m.positioned(parts::project(m, "attention_q", H, K)), k = m.positioned(parts::project(m, "attention_k", G, K));
  const Value o = m.attention({.q = q, .k = k, .v = parts::project(m, "attention_v", G, K)});
  const Value of_attention = m.linear("attention_o", o, m.width()), own = m.linear("o", y, m.width());
  m.output(m.add(own, of_attention));
}

void build(Builder& m) {
  const Beside beside = read_attention(m);
  const Index expand = m.size("expand", 2, "channels of values, in widths");
  const Index inner = m.size("inner", expand * m.width(), "channels of values, in place of expand");
  const Index H = m.size("heads", 4, "heads");
  require(inner % H == 0, m.preset(), "expected heads that divide ", inner, ", got ", H);
  const Index N = m.size("key", 128, "size of the state for each channel");
  const Index G = m.size("groups", 1, "how many b and c there are; each serves heads / groups heads");
  require(H % G == 0, m.preset(), "expected groups that divide heads=", H, ", got ", G);
  const Index conv = m.size("conv", 4, "tokens of the short convolution; 0: SiLU alone", 0);
  const std::string norm = m.choice("norm", {"gated", "before-gate", "none"}, "RMS norm of y times SiLU(z), of y alone, or none");
  const double eps = parts::norm_eps(m, 1e-5, "the default is that of mamba_ssm");
  m.only_with(norm != "none", "a norm", {"norm_eps"});
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
  // Of each group by itself.
  const auto normed = [&](Value y) {
    return m.flat(m.normalise("norm", m.heads(y, G), {.kind = Norm::rms, .eps = eps, .weight = true}));
  };
  if (norm == "before-gate") o = normed(o);
  o = m.gate(Unary::silu, m.linear("z", m.x(), inner), o);
  output(m, beside, norm == "gated" ? normed(o) : o);
}
}  // namespace

extern const Preset mamba2{.name = "mamba2",
                           .source = "Dao & Gu 2024, Mamba-2 (arXiv 2405.21060), section 7",
                           .summary = "state space duality: scalar decays from steps, one key for all heads",
                           .build = build};

}  // namespace isomer::preset::mamba2

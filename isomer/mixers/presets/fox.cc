// fox: softmax_s(q_t·k_s / √K + c_t - c_s), c the running sum of log sigmoid(w·x + b). Option pro: RMS norms of q and k with
// weights of each head, keys and values mixed with those of the token before, and an output norm with a sigmoid gate. Norms stand
// before rotary positions, as in the authors' code, and after those of Selective RoPE, as in that of its authors.
#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::preset::fox {

namespace {
void build(Builder& m) {
  const bool selective = m.positions({"none", "learned", "rope", "selective-rope"}) == "selective-rope";
  const auto [H, K, V] = m.head_sizes({});
  const bool pro = m.flag("pro", false, "norms of q and k, shifted keys and values, output norm and gate");
  const double eps = parts::norm_eps(m, 1e-6, "of the output norm of pro"),
               qk_eps = m.number("qk_norm_eps", 1e-5, "what the norms of q and k of pro add under their roots");
  require(qk_eps > 0, "qk_norm_eps", "expected a positive number, got ", qk_eps);
  m.only_with(pro, "pro=true", {"norm_eps", "qk_norm_eps"});
  const double clamp = parts::logit_clamp(m);
  const Value forget = parts::head_gate(m, "forget", H, Unary::log_sigmoid);
  Value q = parts::project(m, "q", H, K), k = parts::project(m, "k", H, K), v = parts::project(m, "v", H, V);
  if (pro) {
    // alpha times the token before, 1 - alpha times the token itself.
    const auto mixed = [&, H = H](const char* name, Value now) {
      const Value alpha = m.map(Unary::sigmoid, m.heads(m.linear(std::string(name) + "_shift", m.x(), H), H));
      return m.named(name, m.add(now, m.multiply(alpha, m.subtract(m.shift(now), now))));
    };
    k = mixed("k", k), v = mixed("v", v);
  }
  const auto placed = [&](const char* name, const char* norm, Value in) {
    if (selective) in = m.positioned(in);
    if (pro) in = m.named(name, m.normalise(norm, in, {.kind = Norm::rms, .eps = qk_eps, .weight = true}));
    return selective ? in : m.positioned(in);
  };
  q = placed("q", "q_norm", q), k = placed("k", "k_norm", k);
  Value o = m.attention({.q = q, .k = k, .v = v, .log_forget = m.named("log_forget", forget)}, {.clamp = clamp});
  if (pro) {
    o = m.normalise("norm", o, {.kind = Norm::rms, .eps = eps, .weight = true});
    o = parts::gated(m, Unary::sigmoid, o);
  }
  parts::output(m, o);
}
}  // namespace

extern const Preset fox{.name = "fox",
                        .source = "Lin et al. 2025, Forgetting Transformer (arXiv 2503.02130), eq. 6",
                        .summary = "softmax attention with a forget gate of each head",
                        .build = build};

}  // namespace isomer::preset::fox

#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::parts {

Builder::HeadSizes linear_sizes(Builder& m, const Builder::HeadDefaults& fallback) {
  m.positions({"none", "learned", "rope", "selective-rope"});
  return m.head_sizes(fallback);
}

void linear_mixer(Builder& m, const LinearMixer& what) {
  const auto [H, K, V] = what.sizes;
  const bool causal = m.flag("causal", true, "a token sees itself and those before");
  const bool bias = m.flag("bias", false, "biases of q, k, v and the output");
  require(causal || !what.log_decay.present(), m.preset(), "a gate needs causal=true");
  require(!causal || (!what.of_whole && what.local_heads == 0), m.preset(), "feature_eps and local_heads need causal=false");
  require(what.local_heads < H, m.preset(), "expected local_heads below heads=", H, ", got ", what.local_heads);
  const Index global = H - what.local_heads;
  const auto some = [&](Value x, Index first, Index count) {
    const Index size = m.node(x).size;
    return count == m.node(x).heads ? x : m.heads(m.slice(m.flat(x), first * size, count * size), count);
  };
  const Value all_q = m.positioned(project(m, "q", H, K, {.bias = bias}));
  Value q = m.named("q", what.feature(some(all_q, 0, global), "q"));
  const Value all_k = m.positioned(project(m, "k", H, K, {.bias = bias}));
  Value k = m.named("k", what.feature(some(all_k, 0, global), "k"));
  const bool clamps = what.clamp < std::numeric_limits<double>::infinity();
  if (clamps) {
    // No state of fixed size has clamped weights. Attention's are 1 + s, so one more feature takes 1 from s.
    ISOMER_ASSERT(!what.log_decay.present() && !what.log_input.present(), "clamped weights have no gates");
    q = m.named("q", m.concat({m.affine(q, what.scale), m.affine(m.slice(q, 0, 1), 0, -1)}));
    k = m.named("k", m.concat({k, m.affine(m.slice(k, 0, 1), 0, 1)}));
  }
  const Value all_v = project(m, "v", H, V, {.bias = bias});
  Value v = some(all_v, 0, global);
  if (what.value) v = m.named("v", what.value(v));
  const auto clamped = [&](Value values) {
    AttentionOptions options{.scale = 1, .clamp = what.clamp - 1, .kernel = AttentionOptions::Kernel::taylor, .order = 1};
    options.normaliser = AttentionOptions::Normaliser::none;
    if (!causal) options.direction = AttentionOptions::Direction::bidirectional;
    return m.attention({.q = q, .k = k, .v = values}, options);
  };
  const auto law = [&](Value values, Sums kind, Value, double) {
    if (clamps) return clamped(values);
    ScalarDecayOptions options{.scale = what.scale};
    if (kind == Sums::sum) options.normaliser = ScalarDecayOptions::Normaliser::sum, options.eps = what.eps;
    if (!causal) options.direction = ScalarDecayOptions::Direction::global;
    return m.scalar_decay({.q = q, .k = k, .v = values, .log_decay = what.log_decay, .log_input = what.log_input}, options);
  };
  // Rounding of 1 + s may leave a weight of 0 below it.
  Value o = read_out(m, v, what.readout, {.heads = global, .positive = what.positive && !clamps, .causal = causal, .law = law});
  if (global < H) {
    const auto local = [&, H = H](Value x) { return some(x, global, H - global); };
    const AttentionOptions blocks{.direction = AttentionOptions::Direction::bidirectional, .block = what.block};
    o = m.concat(
        {m.named("linear_o", m.flat(o)), m.flat(m.attention({.q = local(all_q), .k = local(all_k), .v = local(all_v)}, blocks))});
  }
  output(m, o, {.bias = bias});
}

}  // namespace isomer::parts

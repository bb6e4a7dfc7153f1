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
  require(causal || !what.log_decay.present(), m.preset(), "a gate needs causal=true");
  const Value q = m.named("q", what.feature(m.positioned(project(m, "q", H, K)), "q"));
  const Value k = m.named("k", what.feature(m.positioned(project(m, "k", H, K)), "k"));
  Value v = project(m, "v", H, V);
  if (what.value) v = m.named("v", what.value(v));
  const auto law = [&](Value values, Sums kind, Value) {
    ScalarDecayOptions options{.scale = what.scale};
    if (kind == Sums::sum) options.normaliser = ScalarDecayOptions::Normaliser::sum, options.eps = what.eps;
    if (!causal) options.direction = ScalarDecayOptions::Direction::global;
    return m.scalar_decay({.q = q, .k = k, .v = values, .log_decay = what.log_decay, .log_input = what.log_input}, options);
  };
  output(m, read_out(m, v, what.readout, {.heads = H, .positive = what.positive, .causal = causal, .law = law}));
}

}  // namespace isomer::parts

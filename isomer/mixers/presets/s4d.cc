// s4d: each channel has its own diagonal complex system h_t = exp(step A) h_{t-1} + (exp(step A) - 1)/A u_t, y = 2 Re(C h) + D u;
// A = -1/2 + i pi n at the start (S4D-Lin), step log-uniform. GELU and a gated projection after it. `state` counts complex
// numbers, half of the source's N.
#include <cmath>

#include "isomer/mixers/parts.h"

namespace isomer::preset {

namespace {
void build(Builder& m) {
  m.positions({"none", "learned"});
  const Index d = m.width(), N = m.size("state", 8, "complex states of each channel");
  const parts::Discrete system = parts::discretised(m, {.heads = d, .size = N});
  const Value u = m.heads(m.x(), d);
  const Value h = m.scan({.log_decay = m.flat(system.log_decay),
                          .x = m.flat(m.multiply(u, system.real)),
                          .angle = m.flat(system.angle),
                          .x_imag = m.flat(m.multiply(u, system.imag))});
  // The real parts of all channels stand before the imaginary ones.
  const Value both = m.flat(m.head_linear("c", m.heads(h, 2 * d), 1, {.weight = graph::normal(std::sqrt(2.0))}));
  const Value y = m.add(m.slice(both, 0, d), m.slice(both, d, d));
  parts::output_glu(m, m.add(y, m.multiply(m.x(), m.parameter("d", 1, d, graph::normal(1)))));
}
}  // namespace

extern const Preset s4d{.name = "s4d",
                        .source = "Gu et al. 2022, S4D (arXiv 2206.11893), section 3",
                        .summary = "a diagonal state space for each channel",
                        .build = build};

}  // namespace isomer::preset

// s4d: each channel has its own diagonal complex system h_t = exp(step A) h_{t-1} + u_t, y = 2 Re(C (exp(step A) - 1)/A h) + D u;
// A = -1/2 + i pi n at the start (S4D-Lin), step log-uniform. Exact GELU and a gated projection after it. `state` counts complex
// numbers, half of the source's N. What the source multiplies u by, constant over time, is multiplied to C, as in its code.
#include <cmath>

#include "isomer/mixers/parts.h"

namespace isomer::preset::s4d {

namespace {
void build(Builder& m) {
  m.positions({"none", "learned"});
  const Index d = m.width(), N = m.size("state", 8, "complex states of each channel");
  const parts::Discrete system = parts::discretised(m, {.heads = d, .size = N});
  const Value h =
      m.scan({.log_decay = m.flat(system.log_decay), .x = m.flat(m.repeat(m.heads(m.x(), d), N)), .angle = m.flat(system.angle)});
  // Re((c_real - i c_imag) hold h), with 2 in the start of C.
  const Value real = m.parameter("c_real", d, N, graph::normal(std::sqrt(2.0)));
  const Value imag = m.parameter("c_imag", d, N, graph::normal(std::sqrt(2.0)));
  const Value of_real = m.named("c_hold_real", m.add(m.multiply(real, system.real), m.multiply(imag, system.imag)));
  const Value of_imag = m.named("c_hold_imag", m.subtract(m.multiply(imag, system.real), m.multiply(real, system.imag)));
  // The real parts of all channels stand before the imaginary ones.
  const Value y = m.add(m.flat(m.dot(m.heads(m.slice(h, 0, d * N), d), of_real)),
                        m.flat(m.dot(m.heads(m.slice(h, d * N, d * N), d), of_imag)));
  parts::output_glu(m, m.add(y, m.multiply(m.x(), m.parameter("d", 1, d, graph::normal(1)))), Unary::gelu_erf);
}
}  // namespace

extern const Preset s4d{.name = "s4d",
                        .source = "Gu et al. 2022, S4D (arXiv 2206.11893), section 3",
                        .summary = "a diagonal state space for each channel",
                        .build = build};

}  // namespace isomer::preset::s4d

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
  const Value imag_imag = m.multiply(imag, system.imag), real_real = m.multiply(real, system.real);
  const Value of_real = m.named("c_hold_real", m.add(real_real, imag_imag));
  const Value real_imag = m.multiply(real, system.imag), imag_real = m.multiply(imag, system.real);
  const Value of_imag = m.named("c_hold_imag", m.subtract(imag_real, real_imag));
  // The real parts of all channels stand before the imaginary ones.
  const auto read = [&](Index begin, Value c) { return m.flat(m.dot(m.heads(m.slice(h, begin, d * N), d), c)); };
  const Value y_imag = read(d * N, of_imag), y_real = read(0, of_real);
  const Value y = m.add(y_real, y_imag);
  parts::output_glu(m, parts::plus_input(m, y), Unary::gelu_erf);
}
}  // namespace

extern const Preset s4d{.name = "s4d",
                        .source = "Gu et al. 2022, S4D (arXiv 2206.11893), section 3",
                        .summary = "a diagonal state space for each channel",
                        .build = build};

}  // namespace isomer::preset::s4d

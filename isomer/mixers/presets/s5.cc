// s5: one diagonal complex system h_t = exp(step A) h_{t-1} + (exp(step A) - 1)/A B u_t, y = 2 Re(C h) + D u, with a step for
// each state; A at the start has the eigenvalues of HiPPO-N, of one block or several. GELU and a gated projection after it.
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::preset::s5 {

namespace {
void build(Builder& m) {
  m.positions({"none", "learned"});
  const Index d = m.width(), N = m.size("state", (d + 1) / 2, "complex states");
  const Index blocks = m.size("blocks", 1, "blocks of HiPPO-N that the states start as");
  require(N % blocks == 0, m.preset(), "expected blocks that divide state=", N, ", got ", blocks);
  std::vector<double> frequencies;
  for (Index b = 0; b < blocks; ++b)
    for (const double w : parts::hippo_frequencies(N / blocks)) frequencies.push_back(w);
  const parts::Discrete system =
      parts::discretised(m, {.heads = 1, .size = N, .step_of_head = false, .frequencies = std::move(frequencies)});
  const graph::Linear in{.weight = graph::normal(1 / std::sqrt(2.0 * double(d)))};
  const Value real = m.linear("b_real", m.x(), N, in), imag = m.linear("b_imag", m.x(), N, in);
  const Value imag_imag = m.multiply(imag, system.imag), real_real = m.multiply(real, system.real);
  const Value x_real = m.subtract(real_real, imag_imag);
  const Value imag_real = m.multiply(imag, system.real), real_imag = m.multiply(real, system.imag);
  const Value x_imag = m.add(real_imag, imag_real);
  const Value h = m.scan({.log_decay = system.log_decay, .x = x_real, .angle = system.angle, .x_imag = x_imag});
  // 2 Re(C h), with the factor in the weights.
  const Value y = m.linear("c", h, d, {.weight = graph::normal(std::sqrt(2.0 / double(N)))});
  parts::output_glu(m, parts::plus_input(m, y), Unary::gelu);
}
}  // namespace

extern const Preset s5{.name = "s5",
                       .source = "Smith et al. 2022, S5 (arXiv 2208.04933), eq. 2-6",
                       .summary = "one diagonal state space for all channels",
                       .build = build};

}  // namespace isomer::preset::s5

// rg-lru: h_t = a_t∘h_{t-1} + √(1 - a_t²)∘(sigmoid(W_i u)∘u), log a = -8 sigmoid(W_a u) softplus(p), W block-diagonal,
// exp(-softplus(p)) uniform in area between 0.9 and 0.999 at the start. Convolution before, GELU gate beside it. The first token
// is written whole.
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::preset::rg_lru {

namespace {
void build(Builder& m) {
  m.positions({"none", "learned"});
  const Index C = m.size("inner", m.width(), "channels of the recurrence"), H = m.size("heads", 4, "blocks of the gates");
  require(C % H == 0, m.preset(), "expected heads that divide inner=", C, ", got ", H);
  const Index conv = m.size("conv", 4, "tokens of the convolution; 0: none", 0);
  Value u = m.linear("u", m.x(), C, {.bias = true});
  if (conv > 0)
    u = m.named("u",
                m.convolution("conv", u, {.width = conv, .bias = true, .weight = graph::normal(std::sqrt(0.01 / double(conv)))}));
  const auto gate = [&](const char* name) {
    return m.flat(
        m.head_linear(name, m.heads(u, H), C / H, {.bias = true, .weight = graph::normal(1 / std::sqrt(double(C / H)))}));
  };
  const Value rate =
      m.map(Unary::softplus, m.parameter("rate", 1, C, {.kind = graph::Init::Kind::gate_ring, .a = 0.9, .b = 0.999}));
  // Nothing stands before the first token, so forgetting all of it makes the factor of the input 1.
  const Value first = m.map(Unary::relu, m.affine(m.add_node({.work = graph::Position{}, .size = 1}), -1, 2));
  const Value per_step = m.affine(rate, -8), recurrence = m.map(Unary::sigmoid, gate("recurrence_gate"));
  const Value slow = m.multiply(recurrence, per_step);
  const Value log_decay = m.named("log_decay", m.add(m.affine(first, -1e4), slow));
  const Value gated = m.gate(Unary::sigmoid, gate("input_gate"), u), size = m.map(Unary::sqrt_one_minus_exp2, log_decay);
  const Value in = m.multiply(size, gated);
  const Value h = m.scan({.log_decay = log_decay, .x = in});
  parts::output(m, m.gate(Unary::gelu, m.linear("gate", m.x(), C, {.bias = true}), h), {.bias = true});
}
}  // namespace

extern const Preset rg_lru{.name = "rg-lru",
                           .source = "De et al. 2024, Griffin (arXiv 2402.19427), eq. 1-4",
                           .summary = "a real gated linear recurrent unit",
                           .build = build};

}  // namespace isomer::preset::rg_lru

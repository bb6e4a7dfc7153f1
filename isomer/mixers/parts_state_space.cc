#include <cmath>
#include <numbers>

#include "isomer/mixers/parts.h"

namespace isomer::parts {

using graph::Init;

Discrete discretised(Builder& m, const Systems& what) {
  const auto [H, N, own_step] = what;
  const Init between{.kind = Init::Kind::uniform, .a = std::log(1e-3), .b = std::log(0.1)};
  const Value step = m.map(Unary::exp, m.parameter("log_step", H, own_step ? 1 : N, between));
  const Value rate = m.affine(m.map(Unary::exp, m.parameter("log_rate", H, N, graph::constant(std::log(0.5)))), -1);
  std::vector<double> frequencies;
  for (Index h = 0; h < H; ++h)
    for (Index n = 0; n < N; ++n) frequencies.push_back(std::numbers::pi * double(n));
  const Value frequency = m.parameter("frequency", H, N, {.kind = Init::Kind::list, .values = std::move(frequencies)});
  (void)m.named("rate", rate);
  Discrete all{.log_decay = m.named("log_decay", m.multiply(rate, step)), .angle = m.named("angle", m.multiply(frequency, step))};
  const Value size = m.map(Unary::exp, all.log_decay);
  const Value real = m.affine(m.multiply(size, m.map(Unary::cos, all.angle)), 1, -1);
  const Value imag = m.multiply(size, m.map(Unary::sin, all.angle));
  const Value below = m.map(Unary::reciprocal, m.add(m.map(Unary::square, rate), m.map(Unary::square, frequency)));
  all.real = m.named("hold_real", m.multiply(m.add(m.multiply(real, rate), m.multiply(imag, frequency)), below));
  all.imag = m.named("hold_imag", m.multiply(m.subtract(m.multiply(imag, rate), m.multiply(real, frequency)), below));
  return all;
}

void output_glu(Builder& m, Value y) {
  const Index d = m.width();
  const Value both = m.linear("o", m.map(Unary::gelu, y), 2 * d, {.bias = true});
  (void)m.named("g", both);
  m.output(m.gate(Unary::sigmoid, m.slice(both, d, d), m.slice(both, 0, d)));
}

std::vector<double> channel_powers(Index width, double power) {
  std::vector<double> all;
  for (Index n = 0; n < width; ++n) all.push_back(std::pow(double(n) / double(width), power));
  return all;
}

Value token_shift(Builder& m, Value x, Value difference, Value mu) { return m.add(x, m.multiply(difference, mu)); }

void qlstm_mixer(Builder& m, const std::function<Value(Value)>& log_forget) {
  m.positions({"none", "learned"});
  const Index N = m.size("state", 2 * m.width(), "states");
  const Index conv = m.size("conv", 4, "tokens of the convolution on the input; 0: none", 0);
  const bool side = m.flag("side_gate", true, "a GELU gate beside it");
  const Value u = conv > 0 ? m.named("c", m.convolution("conv", m.x(), {.width = conv})) : m.x();
  const Value f = log_forget(m.linear("f", u, N, {.bias = true}));
  const Value in = m.gate(Unary::sigmoid, m.linear("i", u, N, {.bias = true}), m.linear("u", u, N));
  const Value h = m.scan({.log_decay = m.named("log_decay", f), .x = in});
  Value y = m.gate(Unary::sigmoid, m.linear("out", u, N, {.bias = true}), h);
  if (side) y = m.gate(Unary::gelu, m.linear("side", m.x(), N), y);
  output(m, y);
}

}  // namespace isomer::parts

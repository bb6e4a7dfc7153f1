#include <cmath>
#include <numbers>

#include "isomer/mixers/parts.h"

namespace isomer::parts {

using graph::Init;

std::vector<double> hippo_frequencies(Index size) {
  // The normal part of HiPPO-LegS is -1/2 plus the skew-symmetric matrix ±√((2n + 1)(2k + 1))/2. Its entries are products but for
  // the sign, so that the components of an eigenvector are a recurrence, and i w is an eigenvalue where Σ_n atan(2w / (2n + 1))
  // is an odd multiple of pi/2. The sum is concave for w > 0, and Newton's steps from below stay below.
  std::vector<double> all;
  double w = 0;
  for (Index j = 0; j < size; ++j) {
    for (double step = 1; step > 1e-15 * w; w += step) {
      double angle = (double(j) + 0.5) * std::numbers::pi, slope = 0;
      for (Index n = 0; n < 2 * size; ++n) {
        const double rate = 2 / double(2 * n + 1);
        angle -= std::atan(rate * w);
        slope += rate / (1 + rate * w * rate * w);
      }
      step = angle / slope;
    }
    all.push_back(w);
  }
  return all;
}

Discrete discretised(Builder& m, const Systems& what) {
  const auto& [H, N, own_step, given] = what;
  const Init between{.kind = Init::Kind::uniform, .a = std::log(1e-3), .b = std::log(0.1)};
  const Value step = m.map(Unary::exp, m.parameter("log_step", H, own_step ? 1 : N, between));
  const Value rate = m.affine(m.map(Unary::exp, m.parameter("log_rate", H, N, graph::constant(std::log(0.5)))), -1);
  std::vector<double> frequencies = given;
  if (frequencies.empty())
    for (Index i = 0; i < H * N; ++i) frequencies.push_back(std::numbers::pi * double(i % N));
  const Value frequency = m.parameter("frequency", H, N, {.kind = Init::Kind::list, .values = std::move(frequencies)});
  (void)m.named("rate", rate);
  Discrete all{.log_decay = m.named("log_decay", m.multiply(rate, step)), .angle = m.named("angle", m.multiply(frequency, step))};
  const Value size = m.map(Unary::exp, all.log_decay);
  const Value real = m.affine(m.multiply(size, m.map(Unary::cos, all.angle)), 1, -1);
  const Value imag = m.multiply(size, m.map(Unary::sin, all.angle));
  const Value frequency2 = m.map(Unary::square, frequency), rate2 = m.map(Unary::square, rate);
  const Value below = m.map(Unary::reciprocal, m.add(rate2, frequency2));
  // real + i imag over rate + i frequency.
  const Value of_imag = m.multiply(imag, frequency), of_real = m.multiply(real, rate);
  all.real = m.named("hold_real", m.multiply(m.add(of_real, of_imag), below));
  const Value turned_real = m.multiply(real, frequency), turned_imag = m.multiply(imag, rate);
  all.imag = m.named("hold_imag", m.multiply(m.subtract(turned_imag, turned_real), below));
  return all;
}

Value plus_input(Builder& m, Value y) {
  const Value d = m.parameter("d", 1, m.width(), graph::normal(1));
  return m.add(y, m.multiply(m.x(), d));
}

void output_glu(Builder& m, Value y, Unary gelu) {
  const Index d = m.width();
  const Value both = m.linear("o", m.map(gelu, y), 2 * d, {.bias = true});
  (void)m.named("g", both);
  const Value in = m.slice(both, 0, d), gate = m.slice(both, d, d);
  m.output(m.gate(Unary::sigmoid, gate, in));
}

graph::Normalise rwkv_norm(Builder& m) {
  const double eps = norm_eps(m, 64e-5, "the default is RWKV-LM's, for heads of 64");
  const double start = std::pow(double(m.place().layer + 1) / double(m.place().layers), 0.7);
  return {.kind = Norm::layer, .eps = eps, .weight = true, .bias = true, .start = start};
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
  const Index conv = m.size("conv", 4, "tokens of the convolution on u; 0: none", 0);
  const bool side = m.flag("side_gate", true, "a GELU gate beside it");
  Value u = m.linear("u", m.x(), N);
  if (conv > 0) u = m.named("u", m.convolution("conv", u, {.width = conv, .bias = true}));
  const Value f = log_forget(m.linear("f", u, N, {.bias = true}));
  const Value in = m.gate(Unary::sigmoid, m.linear("i", u, N, {.bias = true}), u);
  const Value h = m.scan({.log_decay = m.named("log_decay", f), .x = in});
  Value y = m.gate(Unary::sigmoid, m.linear("out", u, N, {.bias = true}), h);
  if (side) y = m.gate(Unary::gelu_erf, m.linear("side", m.x(), N), y);
  output(m, y);
}

}  // namespace isomer::parts

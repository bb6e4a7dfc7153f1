#include <cmath>

#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::parts {

using graph::Init;

Value short_convolution(Builder& m, std::string_view name, Value in, Index width, bool bias) {
  if (width == 0) return m.map(Unary::silu, in);
  // As in the sources: uniform within 1/sqrt(width), the fan of a depthwise filter.
  const double bound = 1 / std::sqrt(double(width));
  const Init uniform{.kind = Init::Kind::uniform, .a = -bound, .b = bound};
  return m.convolution(name, in, {.width = width, .bias = bias, .silu = true, .weight = uniform});
}

DeltaInputs delta_inputs(Builder& m, const Builder::HeadSizes& sizes, Index value_heads) {
  const auto [H, K, V] = sizes;
  const Index N = value_heads > 0 ? value_heads : H;
  const Index conv = m.size("conv", 4, "tokens of the short convolutions on q, k and v; 0: SiLU alone", 0);
  const bool negative = m.flag("negative", false, "beta from 0 to 2 instead of 1: eigenvalues from -1");
  const auto in = [&](const char* name, Index heads, Index size) {
    const Value x = m.linear(name, m.x(), heads * size);
    return m.heads(m.named(name, short_convolution(m, std::string(name) + "_conv", x, conv)), heads);
  };
  DeltaInputs all{.q = m.positioned(in("q", H, K)), .k = m.positioned(in("k", H, K)), .v = in("v", N, V), .beta = {}};
  const Value beta = m.map(Unary::sigmoid, m.heads(m.linear("beta", m.x(), N), N));
  all.beta = m.named("beta", m.affine(beta, negative ? 2 : 1));
  return all;
}

Value decay_of_steps(Builder& m, Value step, Index heads, double least) {
  const Value rate = m.map(Unary::exp, m.parameter("a_log", heads, 1, {.kind = Init::Kind::log_uniform, .a = least, .b = 16}));
  return m.named("log_decay", m.multiply(step, m.affine(rate, -1)));
}

namespace {
/// i and f before their functions.
struct Gates {
  Value input, forget;
};

Gates gates_of(Builder& m, Value in, Index H, const Init& input_bias, double usual_cap) {
  const double cap = m.number("softcap", usual_cap, "gates are cap tanh(x / cap) first; 0: they are not, as in block=pre-up");
  require(cap >= 0, "softcap", "expected a number >= 0, got ", cap);
  const auto gate = [&](const char* name, const Init& bias) {
    const Value z = m.heads(m.linear(name, in, H, {.bias = true, .weight = graph::constant(0), .bias_init = bias}), H);
    return cap > 0 ? m.map(Unary::softcap, z, {.a = cap}) : z;
  };
  return {gate("i", input_bias), gate("f", {.kind = Init::Kind::linspace, .a = 3, .b = 6})};
}

/// The cell and the norm of each head.
Value cell(Builder& m, InputGate kind, const Gates& gates, const Builder::ScalarDecay& in, double usual_eps) {
  using Normaliser = ScalarDecayOptions::Normaliser;
  const bool exponential = kind == InputGate::exponential;
  const std::string normaliser = exponential ? m.choice("normaliser", {"max", "none"}, "max: by max(|n q|, 1)")
                                             : m.choice("normaliser", {"none", "max"}, "max: by max(|n q|, 1)");
  ScalarDecayOptions options;
  if (normaliser == "max") options.normaliser = Normaliser::max, options.eps = 1e-6;
  require(normaliser == "max" || !exponential, m.preset(),
          "normaliser=none overflows with exponential gates; the preset mlstm-sig is the nearest that works");
  const double eps = norm_eps(m, usual_eps, "1e-6 in xLSTM 7B, 1e-5 in block=pre-up");
  Builder::ScalarDecay all = in;
  all.log_decay = m.named("log_decay", m.map(Unary::log_sigmoid, gates.forget));
  all.log_input = exponential ? gates.input : m.map(Unary::log_sigmoid, gates.input);
  (void)m.named("log_input", all.log_input);
  return m.normalise("norm", m.scalar_decay(all, options), {.kind = Norm::layer, .eps = eps, .weight = true});
}

/// Small numbers for what comes in, and those of Wang & Komatsuzaki for what goes out.
Init small(Index width) { return graph::normal(std::sqrt(2.0 / (5.0 * double(width)))); }
Init outward(const Builder& m, Index width) { return graph::normal(2.0 / (double(m.place().layers) * std::sqrt(double(width)))); }

/// xLSTM 7B: projections of the input itself.
void post_up(Builder& m, InputGate kind, const Builder::HeadSizes& sizes, double bias) {
  const auto [H, K, V] = sizes;
  const graph::Linear in{.weight = small(m.width())};
  const Gates gates = gates_of(m, m.x(), H, graph::constant(bias), 15);
  const Value q = m.positioned(project(m, "q", H, K, in)), k = m.positioned(project(m, "k", H, K, in));
  const Value h = cell(m, kind, gates, {.q = q, .k = k, .v = project(m, "v", H, V, in)}, 1e-6);
  const Value y = gated(m, Unary::sigmoid, h, in);
  output(m, y, {.weight = outward(m, m.width())});
}

/// xLSTM 2024: twice the width, a convolution, and projections in blocks of four channels.
void pre_up(Builder& m, InputGate kind, Index H) {
  const Index inner = 2 * m.width();
  require(inner % 4 == 0, m.preset(), "block=pre-up needs an even width, got ", m.width());
  const graph::Linear in{.weight = small(m.width())};
  const graph::HeadLinear blocks{.weight = small(m.width())};  // by the embedding's width, not by their own
  const Value u = m.linear("u", m.x(), inner, in), z = m.linear("z", m.x(), inner, in);
  const Value c = m.named("c", short_convolution(m, "conv", u, 4, true));
  const auto block = [&](const char* name, Value from) {
    return m.named(name, m.flat(m.head_linear(name, m.heads(from, inner / 4), 4, blocks)));
  };
  const Value q = block("q", c), k = block("k", c), v = block("v", u);
  const Gates gates = gates_of(m, m.concat({q, k, v}), H, graph::normal(0.1), 0);
  const Builder::ScalarDecay in_heads{.q = m.positioned(m.heads(q, H)), .k = m.positioned(m.heads(k, H)), .v = m.heads(v, H)};
  const Value h = cell(m, kind, gates, in_heads, 1e-5);
  const Value skip = m.multiply(c, m.parameter("skip", 1, inner, graph::constant(1)));
  output(m, m.gate(Unary::silu, z, m.add(m.flat(h), skip)), {.weight = outward(m, m.width())});
}
}  // namespace

void mlstm_mixer(Builder& m, InputGate kind) {
  m.positions({"none", "learned", "rope", "selective-rope"});
  const bool up =
      m.choice("block", {"post-up", "pre-up"}, "xLSTM 7B, or the first one: twice the width, convolution, skip") == "pre-up";
  const Index total = 2 * m.width();
  const Builder::HeadSizes sizes = m.head_sizes({.key_total = up ? total : m.width() / 2, .value_total = up ? total : m.width()});
  const double bias = m.number("input_bias", -10, "the input gate's bias at the start: little is written");
  m.only_with(!up, "block=post-up", {"key", "value", "input_bias"});
  if (up) return pre_up(m, kind, sizes.heads);
  post_up(m, kind, sizes, bias);
}

}  // namespace isomer::parts

#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::parts {

Value project(Builder& m, std::string_view name, Index heads, Index size, graph::Linear options) {
  return m.heads(m.linear(name, m.x(), heads * size, std::move(options)), heads);
}

Value head_gate(Builder& m, std::string_view name, Index heads, Unary f) {
  return m.map(f, m.heads(m.linear(name, m.x(), heads, {.bias = true}), heads));
}

double norm_eps(Builder& m, double fallback, std::string_view whose) {
  const double eps = m.number("norm_eps", fallback, "what the norm adds under its root; " + std::string(whose));
  require(eps > 0, "norm_eps", "expected a positive number, got ", eps);
  return eps;
}

double fla_norm_eps(Builder& m) {
  return norm_eps(m, 1e-5, "the default is that of fla's layer by itself, fla's models and Qwen3-Next have 1e-6");
}

Value gated(Builder& m, Unary f, Value o, graph::Linear options) {
  o = m.flat(o);
  const Value gate = m.linear("gate", m.x(), m.node(o).size, std::move(options));
  return m.gate(f, gate, o);
}

void output(Builder& m, Value o, graph::Linear options) { m.output(m.linear("o", o, m.width(), std::move(options))); }

namespace {
struct Chosen {
  std::string denominator, norm, out_gate;
  double floor, denominator_eps, norm_eps;
  bool in_gate, gain;
};

void refuse_denominators(const Builder& m, const Chosen& c, const Summed& summed) {
  const bool divides = c.denominator == "sum" || (c.denominator == "detach" && c.floor <= 0);
  require(summed.positive || !divides, m.preset(), "denominator=", c.denominator,
          " needs weights that are never negative, which these are not; denominator=clamp is the nearest that works");
  const bool counts = c.denominator == "count" || c.denominator == "cumulative";
  require(summed.causal || !counts, m.preset(), "denominator=", c.denominator,
          " needs causal=true; denominator=sum is the nearest that works");
}

Chosen read_options(Builder& m, const Readout& fallback, const Summed& summed) {
  Chosen c;
  c.denominator = m.choice("denominator", {"sum", "clamp", "detach", "cumulative", "count", "none"},
                           "what sums of values are divided by", fallback.denominator);
  c.norm = m.choice("norm", {"none", "l2", "l2-size", "rms", "layer"}, "norm of each head's output", fallback.norm);
  c.gain = m.flag("norm_gain", c.norm == "rms" || c.norm == "layer", "a learned factor for each channel of the norm");
  c.in_gate = m.flag("in_gate", false, "a sigmoid gate of each head on the values");
  c.out_gate = m.choice("out_gate", {"none", "before", "after"}, "a sigmoid gate of each head, before or after the norm",
                        fallback.out_gate);
  const bool clamps = c.denominator == "clamp", detaches = c.denominator == "detach", gates = c.out_gate != "none";
  // The authors' detached denominator is at least 1 without a gate, and has 1e-4 added with one.
  c.floor = m.number("floor", detaches ? (gates ? 0 : 1) : fallback.floor, "clamp, detach: the least denominator");
  c.denominator_eps = m.number("denominator_eps", detaches && gates ? 1e-4 : 0, "detach: what is added to the denominator");
  c.norm_eps = norm_eps(m, c.norm == "rms" ? 1e-6 : c.norm == "layer" ? 1e-5 : 1e-12, "l2 has it as the least length");
  m.only_with(clamps || detaches, "denominator=clamp or detach", {"floor"});
  m.only_with(detaches, "denominator=detach", {"denominator_eps"});
  m.only_with(c.norm != "none", "a norm", {"norm_eps"});
  m.only_with(c.norm == "rms" || c.norm == "layer", "norm=rms or layer", {"norm_gain"});
  refuse_denominators(m, c, summed);
  return c;
}

/// Σ w v / Σ w, with the denominator as one more value: the sums of ones.
Value over_sums(Builder& m, Value v, const Chosen& c, const Summed& summed) {
  const Index V = m.node(v).size;
  const Value ones = m.affine(m.slice(v, 0, 1), 0, 1);
  const Value all = summed.law(m.named("v", m.concat({v, ones})), Sums::none, {}, 0);
  Value below = m.slice(all, V, 1);
  if (c.denominator == "detach")
    below = m.add_node({.work = graph::Detach{}, .inputs = {below.node}, .heads = m.node(below).heads, .size = 1});
  if (c.denominator == "clamp" || c.floor > 0) below = m.map(Unary::max_with, below, {.a = c.floor});
  below = m.affine(below, 1, c.denominator_eps);
  const Value factor = m.map(Unary::reciprocal, below), sums = m.slice(all, 0, V);
  return m.multiply(sums, factor);
}

Value divided(Builder& m, Value v, const Chosen& c, const Summed& summed) {
  if (c.denominator == "clamp" || c.denominator == "detach") return over_sums(m, v, c, summed);
  if (c.denominator == "sum") return summed.law(v, Sums::sum, {}, 0);
  if (c.denominator == "count" && summed.laws_normalise) return summed.law(v, Sums::count, {}, 0);
  const Value o = summed.law(v, Sums::none, {}, 0);
  if (c.denominator == "count") {
    const Value position = m.add_node({.work = graph::Position{}, .size = 1});
    return m.multiply(o, m.map(Unary::reciprocal, position));
  }
  if (c.denominator == "none") return o;
  const Value weights = head_gate(m, "denominator", summed.heads, Unary::exp);
  const Value sums = m.add_node({.work = graph::RunningSum{}, .inputs = {weights.node}, .heads = summed.heads, .size = 1});
  return m.multiply(o, m.map(Unary::reciprocal, m.map(Unary::max_with, sums, {.a = 1})));
}

Value normalised(Builder& m, Value o, const Chosen& c) {
  if (c.norm == "none") return o;
  const Norm kind = c.norm == "rms" ? Norm::rms : c.norm == "layer" ? Norm::layer : Norm::l2;
  o = m.normalise("norm", o,
                  {.kind = kind, .eps = c.norm_eps, .weight = c.gain, .bias = c.gain && kind == Norm::layer, .shared = true});
  return c.norm == "l2-size" ? m.affine(o, double(m.node(o).size)) : o;
}

/// The normaliser of the law that does all of it, if there is one. Norms do not see a positive factor of the row.
Sums whole(const Chosen& c, const Summed& summed) {
  if (!summed.laws_normalise) return Sums::none;
  if (c.denominator == "count" && c.norm == "none" && c.out_gate != "none") return Sums::gate;
  const bool scaled = c.denominator == "sum" || c.denominator == "count" || c.denominator == "none";
  if (!scaled || c.gain || c.out_gate == "before") return Sums::none;
  return c.norm == "l2" ? Sums::l2 : c.norm == "rms" ? Sums::rms : c.norm == "layer" ? Sums::layer : Sums::none;
}
}  // namespace

Value read_out(Builder& m, Value v, const Readout& fallback, const Summed& summed) {
  const Chosen c = read_options(m, fallback, summed);
  if (c.in_gate) v = m.named("v", m.multiply(v, head_gate(m, "in_gate", m.node(v).heads, Unary::sigmoid)));
  const auto gated = [&](Value o) { return m.multiply(o, head_gate(m, "out_gate", summed.heads, Unary::sigmoid)); };
  const Sums kind = whole(c, summed);
  if (kind == Sums::gate) return summed.law(v, kind, head_gate(m, "out_gate", summed.heads, Unary::sigmoid), 0);
  Value o;
  if (kind != Sums::none) {
    o = summed.law(v, kind, {}, c.norm_eps);
  } else {
    o = divided(m, v, c, summed);
    if (c.out_gate == "before") o = gated(o);
    o = normalised(m, o, c);
  }
  return c.out_gate == "after" ? gated(o) : o;
}

}  // namespace isomer::parts

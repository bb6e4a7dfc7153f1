// rwkv7: S_t = Diag(w) S_{t-1} - (kk∘a) (kkᵀ S_{t-1}) + k v ᵀ, log w = -0.6065 sigmoid(w0 + tanh(x A) B), a = sigmoid(a0 + x A
// B), kk = k∘k_k of length one, k ← k (1 + (a - 1) k_a). Group norm, + (Σ r∘k∘r_k) v, gate sigmoid(x A) B. Starts as in RWKV-LM
// of its time. In later layers v ← v + (v of the first layer - v) sigmoid(v0 + x A B).
#include <cmath>

#include "isomer/mixers/parts.h"

namespace isomer::preset::rwkv7 {

namespace {
using graph::Init;

Init decays(Index size, double depth) {
  Init start{.kind = Init::Kind::list};
  for (Index n = 0; n < size; ++n)
    start.values.push_back(-6.5 + 5 * std::pow(double(n) / double(std::max<Index>(1, size - 1)), 0.85 + std::sqrt(depth)));
  return start;
}

void build(Builder& m) {
  const Index d = m.width();
  const auto [H, K, V] = m.head_sizes({});
  const auto rank = [&](double factor, double power) {
    return std::max<Index>(32, 32 * Index(std::lround(factor * std::pow(double(d), power) / 32)));
  };
  const Index decay_rank = m.size("decay_rank", rank(1.8, 0.5), "rank of the decays"),
              rate_rank = m.size("rate_rank", rank(1.8, 0.5), "rank of a");
  const Index mix_rank = m.size("mix_rank", rank(1.3, 0.5), "rank of the mix of v with that of the first layer");
  const Index gate_rank = m.size("gate_rank", rank(0.6, 0.8), "rank of the output gate");
  const double depth = m.place().layers == 1 ? 0 : double(m.place().layer) / double(m.place().layers - 1);
  const double rest = 1 - double(m.place().layer) / double(m.place().layers);
  const Value x = m.x(), difference = m.named("dx", m.subtract(m.shift(x), x));
  const auto mixed = [&](const std::string& name, double power, double less) {
    std::vector<double> start = parts::channel_powers(d, power * rest);
    for (double& value : start) value = 1 - (value + less);
    const Value mu = m.parameter("mu_" + name, 1, d, {.kind = Init::Kind::list, .values = start});
    return m.named("x" + name, parts::token_shift(m, x, difference, mu));
  };
  const auto low = [&](const char* name, Value in, Index r, Index size, graph::Linear up, Unary between) {
    up.weight = parts::rwkv_matrix(0.1);
    return m.low_rank(name, in, {.rank = r, .size = size, .down = {.weight = graph::constant(0)}, .up = up, .between = between});
  };
  const Value r = m.heads(m.linear("r", mixed("r", 0.2, 0), H * K, {.weight = parts::rwkv_matrix(1)}), H);
  const Value own = m.heads(m.linear("k", mixed("k", 0.9, 0.4 * depth), H * K, {.weight = parts::rwkv_matrix(0.1)}), H);
  const Value xv = mixed("v", 0.4, 0.6 * depth);
  Value v = m.linear("v", xv, H * V, {.weight = parts::rwkv_matrix(1)});
  if (const Value first = m.from_first_layer("v", v); first.present()) {
    const Value share = low("mix", xv, mix_rank, H * V, {.bias = true, .bias_init = graph::constant(1)}, Unary::identity);
    v = m.named("v", m.add(v, m.gate(Unary::sigmoid, share, m.subtract(first, v))));
  }
  v = m.heads(v, H);
  graph::Linear slow{.bias = true};
  slow.bias_init = decays(H * K, depth);
  const Value w = low("w", mixed("w", 0.9, 0), decay_rank, H * K, slow, Unary::tanh);
  const Value rate = low("rate", mixed("a", 0.9, 0), rate_rank, H * K, {.bias = true}, Unary::identity);
  const Value gate = low("g", mixed("g", 0.2, 0), gate_rank, H * V, {}, Unary::sigmoid);
  const Value log_decay = m.named("log_decay", m.heads(m.affine(m.map(Unary::sigmoid, w), -std::exp(-0.5)), H));
  // With its sign: -a is what the law and k need.
  const Value minus_a = m.named("minus_rate", m.heads(m.affine(m.map(Unary::sigmoid, rate), -1), H));
  const Value scaled = m.multiply(own, m.parameter("k_k", H, K, graph::constant(0.85)));
  const Value kk = m.named("kk", m.normalise("", scaled, {.kind = Norm::l2, .eps = 1e-12}));
  // 1 + (a - 1) k_a = (1 - k_a) + a k_a.
  const Value k_a = m.parameter("k_a", H, K, graph::constant(1));
  const Value of_a = m.multiply(minus_a, m.affine(k_a, -1)), rest_of_k = m.affine(k_a, -1, 1);
  const Value change = m.add(rest_of_k, of_a);
  const Value k = m.named("k", m.multiply(own, change));
  Value o = m.delta({.q = r, .k = k, .v = v, .log_decay = log_decay, .a = kk, .b = m.multiply(kk, minus_a)}, {.scale = 1});
  o = m.normalise("norm", o, parts::rwkv_norm(m));
  const Value now = m.head_linear("r_k", m.multiply(r, k), 1, {.weight = graph::constant(0)});
  o = m.flat(m.add(o, m.multiply(now, v)));
  parts::output(m, m.multiply(gate, o), {.weight = graph::constant(0)});
}
}  // namespace

extern const Preset rwkv7{.name = "rwkv7",
                          .source = "Peng et al. 2025, RWKV-7 Goose (arXiv 2503.14456), eq. 3-17",
                          .summary = "diagonal plus low-rank transitions: decay and targeted removal",
                          .build = build};

}  // namespace isomer::preset::rwkv7

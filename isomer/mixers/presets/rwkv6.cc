// rwkv6: o_t = S_{t-1}ᵀ r + (r·(u∘k)) v, S_t = Diag(w_t) S_{t-1} + k_t v_tᵀ, log w = -exp(w0 + tanh(x A) B). Every projection
// reads its own mix of a token with the one before, which depends on the token (rank 32). Group norm, SiLU gate. Starts as in
// RWKV-LM.
#include <cmath>

#include "isomer/mixers/parts.h"

namespace isomer::preset::rwkv6 {

namespace {
using graph::Init;

const Init small{.kind = Init::Kind::uniform, .a = -0.01, .b = 0.01};

/// From slow to fast: -6 to -1.
Init decays(Index size, double depth) {
  Init start{.kind = Init::Kind::list};
  for (Index n = 0; n < size; ++n)
    start.values.push_back(-6 + 5 * std::pow(double(n) / double(std::max<Index>(1, size - 1)), 0.7 + 1.3 * depth));
  return start;
}

Init bonus(Index size, double depth) {
  Init start{.kind = Init::Kind::list};
  for (Index n = 0; n < size; ++n)
    start.values.push_back(depth * (1 - double(n) / double(std::max<Index>(1, size - 1))) + 0.1 * double((n + 1) % 3 - 1));
  return start;
}

void build(Builder& m) {
  const Index d = m.width();
  const auto [H, K, V] = m.head_sizes({});
  const Index mix_rank = m.size("mix_rank", 32, "rank of the mixes with the token before");
  const Index decay_rank = m.size("decay_rank", 64, "rank of the decays");
  const double depth = m.place().layers == 1 ? 0 : double(m.place().layer) / double(m.place().layers - 1);
  const double rest = 1 - double(m.place().layer) / double(m.place().layers);
  const Value x = m.x(), difference = m.named("dx", m.subtract(m.shift(x), x));
  const auto weights = [&](double power, double less) {
    std::vector<double> all = parts::channel_powers(d, power);
    for (double& value : all) value = 1 - (value + less);
    return Init{.kind = Init::Kind::list, .values = all};
  };
  const Value base = m.named("xx", parts::token_shift(m, x, difference, m.parameter("mix", 1, d, weights(rest, 0))));
  const auto mixed = [&](const std::string& name, const Init& start) {
    const Value change = m.low_rank(
        "mix_" + name, base,
        {.rank = mix_rank, .size = d, .down = {.weight = graph::constant(0)}, .up = {.weight = small}, .between = Unary::tanh});
    const Value mu = m.add(m.parameter("mu_" + name, 1, d, start), change);
    return m.named("x" + name, parts::token_shift(m, x, difference, mu));
  };
  const auto project = [&, H = H](const char* name, Index size, const Init& start, double gain) {
    return m.linear(name, mixed(name, start), H * size, {.weight = parts::rwkv_matrix(gain)});
  };
  const Value r = m.heads(project("r", K, weights(0.5 * rest, 0), 1), H), k = m.heads(project("k", K, weights(rest, 0), 0.1), H);
  const Value v = m.heads(project("v", V, weights(rest, 0.3 * depth), 1), H);
  const Value gate = project("g", V, weights(0.5 * rest, 0), 0.1);
  const Value w = m.low_rank("w", mixed("w", weights(rest, 0)),
                             {.rank = decay_rank,
                              .size = H * K,
                              .down = {.weight = graph::constant(0)},
                              .up = {.bias = true, .weight = small, .bias_init = decays(H * K, depth)},
                              .between = Unary::tanh});
  const Value log_decay = m.named("log_decay", m.heads(m.affine(m.map(Unary::exp, w), -1), H));
  const Value u = m.named("u", m.parameter("u", H, K, bonus(H * K, depth)));
  Value o = m.channel_decay({.q = r, .k = k, .v = v, .log_decay = log_decay, .bonus = u},
                            {.scale = 1, .read = ChannelDecayOptions::Read::before});
  o = m.flat(m.normalise("norm", o, parts::rwkv_norm(m)));
  parts::output(m, m.gate(Unary::silu, gate, o), {.weight = graph::constant(0)});
}
}  // namespace

extern const Preset rwkv6{.name = "rwkv6",
                          .source = "Peng et al. 2024, Eagle and Finch (arXiv 2404.05892), eq. 14-20",
                          .summary = "decays of each channel from the token, read before the update",
                          .build = build};

}  // namespace isomer::preset::rwkv6

// performer: phi_i(x) = m^-1/2 exp(w_i·x' - |x'|²/2), x' = x K^-1/4, w random, orthogonal in blocks: E phi(q)·phi(k) = exp(q·k /
// √K). The weights are drawn once and stay. Exponents are shifted by their maximum, of a query and of all keys, only with
// feature_eps, which is added behind: over keys that looks ahead.
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::preset::performer {

namespace {
void build(Builder& m) {
  const auto sizes = parts::linear_sizes(m);
  const double K = double(sizes.key);
  const Index features = m.size("features", 2 * sizes.key, "random features of each head");
  const bool orthogonal = m.flag("orthogonal", true, "directions orthogonal in blocks");
  const bool learned = m.flag("learned", false, "are the directions trained?");
  const graph::HeadLinear random{.shared = true,
                                 .training = learned ? graph::Training::trained : graph::Training::fixed,
                                 .weight = orthogonal ? graph::Init{.kind = graph::Init::Kind::orthogonal} : graph::normal(1)};
  const double floor = m.number("feature_eps", 0, "added to features, which are shifted to a maximum of 1; needs causal=false");
  require(floor >= 0, "feature_eps", "expected a number >= 0, got ", floor);
  const Index local = m.size("local_heads", 0, "the last of the heads: softmax attention in blocks; needs causal=false", 0);
  const Index block = m.size("block", 256, "local_heads: a token sees its own block of so many and those beside it");
  m.only_with(local > 0, "local_heads", {"block"});
  const auto feature = [&](Value x, std::string_view name) {
    const Value scaled = m.affine(x, std::pow(K, -0.25));
    const Value square =
        m.add_node({.work = graph::SquareSum{}, .inputs = {scaled.node}, .heads = m.node(scaled).heads, .size = 1});
    const Value below = m.affine(square, 0.5, 0.5 * std::log(double(features)));
    const Value z = m.head_linear("features", scaled, features, random);
    if (floor == 0) return m.map(Unary::exp, m.subtract(z, below));
    // What all features are multiplied by cancels.
    const graph::Largest largest{.over_tokens = name == "k"};
    const Value most = m.add_node({.work = largest, .inputs = {z.node}, .heads = m.node(z).heads, .size = 1});
    return m.affine(m.map(Unary::exp, m.subtract(m.subtract(z, m.affine(square, 0.5)), most)), 1, floor);
  };
  parts::linear_mixer(m, {.feature = feature,
                          .eps = floor == 0 ? 1e-6 : 0,
                          .sizes = sizes,
                          .of_whole = floor > 0,
                          .local_heads = local,
                          .block = block});
}
}  // namespace

extern const Preset performer{.name = "performer",
                              .source = "Choromanski et al. 2020, Performer (arXiv 2009.14794), lemma 1",
                              .summary = "positive random features of the softmax kernel",
                              .build = build};

}  // namespace isomer::preset::performer

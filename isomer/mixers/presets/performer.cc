// performer: phi_i(x) = m^-1/2 exp(w_i·x' - |x'|²/2), x' = x K^-1/4, w random, orthogonal in blocks: E phi(q)·phi(k) = exp(q·k /
// √K). The weights are drawn once and stay. Exponents are not shifted by their maximum: over keys it would look ahead.
#include <cmath>

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
  const auto feature = [&](Value x, std::string_view) {
    const Value scaled = m.affine(x, std::pow(K, -0.25));
    const Value square = m.add_node({.work = graph::SquareSum{}, .inputs = {scaled.node}, .heads = sizes.heads, .size = 1});
    const Value below = m.affine(square, 0.5, 0.5 * std::log(double(features)));
    return m.map(Unary::exp, m.subtract(m.head_linear("features", scaled, features, random), below));
  };
  parts::linear_mixer(m, {.feature = feature, .eps = 1e-6, .sizes = sizes});
}
}  // namespace

extern const Preset performer{.name = "performer",
                              .source = "Choromanski et al. 2020, Performer (arXiv 2009.14794), lemma 1",
                              .summary = "positive random features of the softmax kernel",
                              .build = build};

}  // namespace isomer::preset::performer

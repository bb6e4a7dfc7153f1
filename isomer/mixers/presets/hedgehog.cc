// hedgehog: phi(x) = [exp(W x + b), exp(-W x - b)], W the unit matrix and b = 0 at the start, of each head. The stable form
// divides by the sum of all features (softmax) or of each half, which weighs keys anew.
#include <string>

#include "isomer/mixers/parts.h"

namespace isomer::preset::hedgehog {

namespace {
void build(Builder& m) {
  const auto sizes = parts::linear_sizes(m);
  const std::string form =
      m.choice("form", {"softmax", "halves", "exp"}, "features over their sum, over the sum of each half, or plain");
  const bool shared = m.flag("shared", false, "one map for queries and keys");
  const graph::HeadLinear learned{.bias = true, .weight = {.kind = graph::Init::Kind::identity, .a = 1}};
  const auto softmax = [&](Value x) {
    return m.add_node({.work = graph::Softmax{}, .inputs = {x.node}, .heads = sizes.heads, .size = m.node(x).size});
  };
  const auto feature = [&](Value x, std::string_view name) {
    const std::string own = shared ? "features" : "features_" + std::string(name);
    const Value u = m.head_linear(own, x, sizes.key, learned), minus = m.affine(u, -1);
    if (form == "halves") return m.concat({softmax(u), softmax(minus)});
    const Value both = m.concat({u, minus});
    return form == "softmax" ? softmax(both) : m.map(Unary::exp, both);
  };
  parts::linear_mixer(m, {.feature = feature, .eps = 1e-12, .sizes = sizes});
}
}  // namespace

extern const Preset hedgehog{.name = "hedgehog",
                             .source = "Zhang et al. 2024, Hedgehog (arXiv 2402.04347), eq. 3-6",
                             .summary = "learned features exp(W x + b) and exp(-W x - b)",
                             .build = build};

}  // namespace isomer::preset::hedgehog

// luna: phi(x) = h(x) / √m [psi_l(w_i·x + b_i)], i ≤ m, l ≤ L; W, psi and h are learned, one W for all heads, queries and keys.
// psi is 1 → 64 → L with relu, as L networks or one; with `positive` a last relu and a floor keep weights above 0. h is 1 as in
// the authors' listing, exp(-|x|²/2), or a learned softplus(w·x + b). Their channel RMS control looks ahead and is left out.
#include <cmath>

#include "isomer/mixers/parts.h"

namespace isomer::preset::luna {

namespace {
void build(Builder& m) {
  const auto sizes = parts::linear_sizes(m);
  const Index M = m.size("features", 8, "m, projections"), L = m.size("functions", 4, "L, functions of each projection");
  const Index hidden = m.size("hidden", 64, "hidden units of psi");
  const bool shared = m.choice("psi", {"separate", "shared"}, "a network for each function, or one for all") == "shared";
  const std::string envelope = m.choice("envelope", {"none", "gaussian", "learned"}, "h(x)");
  const bool positive = m.flag("positive", true, "psi ends with relu and a floor");
  const double root = 1 / std::sqrt(double(sizes.key));
  const auto feature = [&](Value x, std::string_view) {
    const Value u = m.head_linear("features", x, M, {.bias = true, .shared = true, .weight = graph::normal(root)});
    const graph::Psi psi{.outputs = L, .hidden = hidden, .shared = shared, .positive = positive};
    Value phi = m.add_node({.parameters = "psi", .work = psi, .inputs = {u.node}, .heads = sizes.heads, .size = M * L});
    phi = m.affine(phi, 1 / std::sqrt(double(M)));
    if (envelope == "none") return phi;
    if (envelope == "learned") {
      const Value h = m.head_linear("envelope", x, 1, {.bias = true, .shared = true, .weight = graph::normal(root)});
      return m.multiply(m.map(Unary::softplus, h), phi);
    }
    const Value square = m.add_node({.work = graph::SquareSum{}, .inputs = {x.node}, .heads = sizes.heads, .size = 1});
    return m.multiply(m.map(Unary::exp, m.affine(square, -0.5)), phi);
  };
  parts::linear_mixer(m, {.feature = feature,
                          .positive = positive,
                          .eps = 1e-6,
                          .readout = {.denominator = positive ? "sum" : "clamp", .floor = 1e-6},
                          .sizes = sizes});
}
}  // namespace

extern const Preset luna{.name = "luna",
                         .source = "Shahbazi et al. 2025, LUNA (arXiv 2512.08061), eq. 9 and 11",
                         .summary = "a learned kernel: small networks of learned projections",
                         .build = build};

}  // namespace isomer::preset::luna

// linear-exp: phi(x) = exp(t x), divided by the sum of weights.
#include "isomer/mixers/parts.h"

namespace isomer::preset::linear_exp {

namespace {
void build(Builder& m) {
  const auto sizes = parts::linear_sizes(m);
  const double t = m.number("temperature", 1, "features are exp(temperature x)");
  const auto feature = [&](Value x, std::string_view) { return m.map(Unary::exp, m.affine(x, t)); };
  parts::linear_mixer(m, {.feature = feature, .sizes = sizes});
}
}  // namespace

extern const Preset linear_exp{.name = "linear-exp",
                               .source = "Zhang et al. 2024, Hedgehog (arXiv 2402.04347), exp(t)",
                               .summary = "linear attention, features exp(t x)",
                               .build = build};

}  // namespace isomer::preset::linear_exp

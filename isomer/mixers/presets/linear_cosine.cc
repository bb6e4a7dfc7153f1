// linear-cosine: phi(x) = x / |x| of each head, no denominator; the value of token s is divided by s^sigmoid(m), m learned for
// each head and 0.5 at the start. (The released code normalises over heads; channels are meant, science P1.8.)
#include "isomer/mixers/parts.h"

namespace isomer::preset::linear_cosine {

namespace {
void build(Builder& m) {
  const auto sizes = parts::linear_sizes(m);
  const auto feature = [&](Value x, std::string_view) { return m.normalise("", x, {.kind = Norm::l2, .eps = 1e-12}); };
  const auto value = [&](Value v) {
    const Value power = m.map(Unary::sigmoid, m.parameter("power", sizes.heads, 1, graph::constant(0.5)));
    const Value log_position = m.map(Unary::log, m.add_node({.work = graph::Position{}, .size = 1}));
    return m.multiply(v, m.map(Unary::exp, m.affine(m.multiply(log_position, power), -1)));
  };
  parts::linear_mixer(
      m, {.feature = feature, .value = value, .positive = false, .readout = {.denominator = "none"}, .sizes = sizes});
}
}  // namespace

extern const Preset linear_cosine{.name = "linear-cosine",
                                  .source = "Mongaras & Larson 2025 (arXiv 2507.23632), linear_cosine",
                                  .summary = "linear attention of unit queries and keys",
                                  .build = build};

}  // namespace isomer::preset::linear_cosine

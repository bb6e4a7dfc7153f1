// cosformer: weights relu(q_i)·relu(k_j) cos(pi/2 (i - j)/M) by features [relu(x) cos(pi i / 2M), relu(x) sin(pi i / 2M)], i
// from 1. M is fixed, for streaming; beyond M tokens weights turn negative. Their floor of the denominator, 1e-6, is added to it
// here.
#include <numbers>

#include "isomer/mixers/parts.h"

namespace isomer::preset::cosformer {

namespace {
void build(Builder& m) {
  const auto sizes = parts::linear_sizes(m);
  const Index M = m.size("length", 2048, "the longest sequence");
  const Value angle = m.affine(m.add_node({.work = graph::Position{}, .size = 1}), std::numbers::pi / (2 * double(M)));
  const Value cosine = m.map(Unary::cos, angle), sine = m.map(Unary::sin, angle);
  const auto feature = [&](Value x, std::string_view) {
    const Value positive = m.map(Unary::relu, x);
    return m.concat({m.multiply(positive, cosine), m.multiply(positive, sine)});
  };
  parts::linear_mixer(m, {.feature = feature, .eps = 1e-6, .sizes = sizes});
}
}  // namespace

extern const Preset cosformer{.name = "cosformer",
                              .source = "Qin et al. 2022, cosFormer (arXiv 2202.08791), eq. 9-10",
                              .summary = "relu features with weights that fall off like a cosine",
                              .build = build};

}  // namespace isomer::preset::cosformer

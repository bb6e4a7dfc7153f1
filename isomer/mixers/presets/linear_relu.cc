// linear-relu: phi = relu, divided by the sum of weights + 1e-8. With denominator=count, a gate and clamp=5 it is their
// gated_relu, with denominator=none and norm=l2 their norm on first-order attention.
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::preset::linear_relu {

namespace {
void build(Builder& m) {
  const auto sizes = parts::linear_sizes(m);
  const double scale = 1 / std::sqrt(double(sizes.key));
  const double clamp = m.limit("clamp", "the largest weight; with one, all keys are kept in place of a state");
  require(clamp > 0, "clamp", "expected a positive number, got ", clamp);
  parts::linear_mixer(m, {.feature = [&](Value x, std::string_view) { return m.map(Unary::relu, x); },
                          .scale = scale,
                          .eps = 1e-8 * scale,
                          .clamp = clamp,
                          .sizes = sizes});
}
}  // namespace

extern const Preset linear_relu{.name = "linear-relu",
                                .source = "Mongaras & Larson 2025 (arXiv 2507.23632), linear_relu",
                                .summary = "linear attention, features max(x, 0)",
                                .build = build};

}  // namespace isomer::preset::linear_relu

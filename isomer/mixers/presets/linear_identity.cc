// linear-identity: o_t = q_t Σ_s k_sᵀ v_s, the first-order term of softmax. Weights have both signs, so that their sum is nothing
// to divide by: the norm of each head takes its place.
#include <cmath>

#include "isomer/mixers/parts.h"

namespace isomer::preset::linear_identity {

namespace {
void build(Builder& m) {
  const auto sizes = parts::linear_sizes(m);
  parts::linear_mixer(m, {.feature = [](Value x, std::string_view) { return x; },
                          .positive = false,
                          .scale = 1 / std::sqrt(double(sizes.key)),
                          .readout = {.denominator = "none", .norm = "rms"},
                          .sizes = sizes});
}
}  // namespace

extern const Preset linear_identity{.name = "linear-identity",
                                    .source = "Mongaras & Larson 2025 (arXiv 2507.23632), order 1 of softmax",
                                    .summary = "linear attention without a feature map, RMS norm of each head",
                                    .build = build};

}  // namespace isomer::preset::linear_identity

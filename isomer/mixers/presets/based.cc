// based: phi(q)·phi(k) = 1 + z + z²/2, z = q·k / √K, by packed features [1, x, x², x_i x_j] of 1 + K + K(K + 1)/2 numbers; keys
// of 16. The weights are at least 1/2, so that their sum can be divided by.
#include "isomer/kernels/elementwise/features.h"
#include "isomer/mixers/parts.h"

namespace isomer::preset::based {

namespace {
void build(Builder& m) {
  const auto sizes = parts::linear_sizes(m, {.key = 16});
  const auto feature = [&](Value x, std::string_view) {
    return m.add_node(
        {.work = graph::TaylorFeatures{}, .inputs = {x.node}, .heads = sizes.heads, .size = taylor_size(sizes.key)});
  };
  parts::linear_mixer(m, {.feature = feature, .eps = 1e-12, .sizes = sizes});
}
}  // namespace

extern const Preset based{.name = "based",
                          .source = "Arora et al. 2024, Based (arXiv 2402.18668), section 3",
                          .summary = "second-order Taylor features of small queries and keys",
                          .build = build};

}  // namespace isomer::preset::based

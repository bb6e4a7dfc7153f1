// t2r: phi(x) = relu(W x + b), learned for each head, the same for queries and keys.
#include <cmath>

#include "isomer/mixers/parts.h"

namespace isomer::preset::t2r {

namespace {
void build(Builder& m) {
  const auto sizes = parts::linear_sizes(m);
  const Index features = m.size("features", sizes.key, "features of each head");
  const graph::HeadLinear learned{.bias = true, .weight = graph::normal(1 / std::sqrt(double(sizes.key)))};
  const auto feature = [&](Value x, std::string_view) {
    return m.map(Unary::relu, m.head_linear("features", x, features, learned));
  };
  parts::linear_mixer(m, {.feature = feature, .eps = 1e-12, .sizes = sizes});
}
}  // namespace

extern const Preset t2r{.name = "t2r",
                        .source = "Kasai et al. 2021, T2R (arXiv 2103.13076), eq. 4",
                        .summary = "learned features relu(W x + b)",
                        .build = build};

}  // namespace isomer::preset::t2r

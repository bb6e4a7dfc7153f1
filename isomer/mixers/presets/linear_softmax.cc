// linear-softmax: phi(x) = softmax over the channels of a head. Keys are normalised over channels too, not over tokens as in the
// source, which would look ahead.
#include "isomer/mixers/parts.h"

namespace isomer::preset::linear_softmax {

namespace {
void build(Builder& m) {
  const auto sizes = parts::linear_sizes(m);
  const auto feature = [&](Value x, std::string_view) {
    return m.add_node({.work = graph::Softmax{}, .inputs = {x.node}, .heads = m.node(x).heads, .size = m.node(x).size});
  };
  parts::linear_mixer(m, {.feature = feature, .sizes = sizes});
}
}  // namespace

extern const Preset linear_softmax{.name = "linear-softmax",
                                   .source = "Shen et al. 2018, Efficient Attention (arXiv 1812.01243), eq. 6",
                                   .summary = "linear attention, features softmax(x) over channels",
                                   .build = build};

}  // namespace isomer::preset::linear_softmax

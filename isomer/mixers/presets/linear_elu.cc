// linear-elu: linear attention with phi = elu + 1, divided by the sum of weights.
#include "isomer/mixers/parts.h"

namespace isomer::preset::linear_elu {

extern const Preset linear_elu{.name = "linear-elu",
                               .source = "Katharopoulos et al. 2020 (arXiv 2006.16236), eq. 7",
                               .summary = "linear attention, features elu(x) + 1",
                               .build = [](Builder& m) {
                                 const auto feature = [&](Value x, std::string_view) { return m.map(Unary::elu_plus_one, x); };
                                 parts::linear_mixer(m, {.feature = feature, .eps = 1e-6, .sizes = parts::linear_sizes(m)});
                               }};

}  // namespace isomer::preset::linear_elu

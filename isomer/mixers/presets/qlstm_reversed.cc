// qlstm-reversed: the forget gate is sigmoid(-W_f u)^relu(alpha), alpha one learned number, 1 at the start.
#include "isomer/mixers/parts.h"

namespace isomer::preset::qlstm_reversed {

namespace {
void build(Builder& m) {
  parts::qlstm_mixer(m, [&](Value f) {
    const Value alpha = m.map(Unary::relu, m.parameter("alpha", 1, 1, graph::constant(1)));
    return m.multiply(alpha, m.map(Unary::log_sigmoid, m.affine(f, -1)));
  });
}
}  // namespace

extern const Preset qlstm_reversed{.name = "qlstm-reversed",
                                   .source = "Sieber et al. 2024 (arXiv 2405.15731), eq. 23",
                                   .summary = "qlstm with the reversed sigmoid of S6 as forget gate",
                                   .build = build};

}  // namespace isomer::preset::qlstm_reversed

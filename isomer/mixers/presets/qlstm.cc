// qlstm: h_t = sigmoid(W_f u)∘h_{t-1} + sigmoid(W_i u)∘(W_u u), y = sigmoid(W_o u)∘h; twice the width, convolution before, GELU
// gate beside.
#include "isomer/mixers/parts.h"

namespace isomer::preset::qlstm {

extern const Preset qlstm{
    .name = "qlstm",
    .source = "Sieber et al. 2024 (arXiv 2405.15731), section 4.3",
    .summary = "an LSTM without its recurrent tanh paths",
    .build = [](Builder& m) { parts::qlstm_mixer(m, [&](Value f) { return m.map(Unary::log_sigmoid, f); }); }};

}  // namespace isomer::preset::qlstm

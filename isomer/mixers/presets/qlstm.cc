// qlstm: u = conv4(W_u x) + b, h_t = sigmoid(W_f u)∘h_{t-1} + sigmoid(W_i u)∘u, y = W (GELU(W_s x)∘sigmoid(W_o u)∘h), of twice
// the width; GELU is the exact one. As in the authors' code (dsf-mqar, lstm.py).
#include "isomer/mixers/parts.h"

namespace isomer::preset::qlstm {

extern const Preset qlstm{
    .name = "qlstm",
    .source = "Sieber et al. 2024 (arXiv 2405.15731), section 4.3",
    .summary = "an LSTM without its recurrent tanh paths",
    .build = [](Builder& m) { parts::qlstm_mixer(m, [&](Value f) { return m.map(Unary::log_sigmoid, f); }); }};

}  // namespace isomer::preset::qlstm

// mlstm: C_t = f_t C_{t-1} + i_t k_t v_tᵀ, n_t = f_t n_{t-1} + i_t k_t, h_t = C_tᵀq / max(|n_t·q|, 1); i = exp, f = sigmoid,
// stabilised by a running maximum. Norm of each head, sigmoid output gate.
#include "isomer/mixers/parts.h"

namespace isomer::preset::mlstm {

extern const Preset mlstm{.name = "mlstm",
                          .source = "Beck et al. 2024, xLSTM (arXiv 2405.04517), eq. 19-27; xLSTM 7B (arXiv 2503.13427)",
                          .summary = "matrix memory with exponential input gates",
                          .build = [](Builder& m) { parts::mlstm_mixer(m, parts::InputGate::exponential); }};

}  // namespace isomer::preset::mlstm

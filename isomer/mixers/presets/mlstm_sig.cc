// mlstm-sig: C_t = sigmoid(f) C_{t-1} + sigmoid(i) k_t v_tᵀ, h_t = C_tᵀq, without a normaliser or with max(|n·q|, 1).
#include "isomer/mixers/parts.h"

namespace isomer::preset::mlstm_sig {

extern const Preset mlstm_sig{.name = "mlstm-sig",
                              .source = "Beck et al. 2025, Tiled Flash Linear Attention (arXiv 2503.14376), section 4",
                              .summary = "matrix memory with sigmoid input gates",
                              .build = [](Builder& m) { parts::mlstm_mixer(m, parts::InputGate::sigmoid); }};

}  // namespace isomer::preset::mlstm_sig

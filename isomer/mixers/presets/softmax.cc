// softmax: o_t = Σ_s softmax_s(q_t·k_s / √K) v_s. The options are the ablations of Mongaras & Larson, P1.3 (parts.h); where their
// code clamps logits at 5, clamp=5 does.
#include "isomer/mixers/parts.h"

namespace isomer::preset::softmax {

extern const Preset softmax{.name = "softmax",
                            .source = "Vaswani et al. 2017; ablations: Mongaras & Larson 2025 (arXiv 2507.23632)",
                            .summary = "softmax attention with rotary positions",
                            .build = [](Builder& m) { parts::attention_mixer(m, {}); }};

}  // namespace isomer::preset::softmax

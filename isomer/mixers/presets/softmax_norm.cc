// softmax-norm: o_t = N(Σ_s exp(q_t·k_s / √K) v_s), N the l2, rms or layer norm of each head. A norm does not see a positive
// factor of its row, so this is softmax attention followed by the norm, and is computed so (science P1.2).
#include "isomer/mixers/parts.h"

namespace isomer::preset::softmax_norm {

extern const Preset softmax_norm{.name = "softmax-norm",
                                 .source = "Mongaras & Larson 2025 (arXiv 2507.23632), Norm",
                                 .summary = "a norm of each head in place of softmax's denominator",
                                 .build = [](Builder& m) { parts::attention_mixer(m, {.readout = {.norm = "l2"}}); }};

}  // namespace isomer::preset::softmax_norm

// softmax-gate: o_t = g_t / t Σ_s exp(q_t·k_s / √K) v_s, g = sigmoid(w·x + b), one number for each head (science P1.2). Without
// the division by t (denominator=none) outputs grow with the sequence.
#include "isomer/mixers/parts.h"

namespace isomer::preset::softmax_gate {

extern const Preset softmax_gate{
    .name = "softmax-gate",
    .source = "Mongaras & Larson 2025 (arXiv 2507.23632), Gate",
    .summary = "a sigmoid gate over t in place of softmax's denominator",
    .build = [](Builder& m) { parts::attention_mixer(m, {.readout = {.denominator = "count", .out_gate = "after"}}); }};

}  // namespace isomer::preset::softmax_gate

// softmax-count: o_t = 1/t Σ_s exp(q_t·k_s / √K) v_s (science P1.3).
#include "isomer/mixers/parts.h"

namespace isomer::preset::softmax_count {

extern const Preset softmax_count{.name = "softmax-count",
                                  .source = "Mongaras & Larson 2025 (arXiv 2507.23632), softmax_divs",
                                  .summary = "sums of exponentials divided by the number of keys",
                                  .build = [](Builder& m) { parts::attention_mixer(m, {.readout = {.denominator = "count"}}); }};

}  // namespace isomer::preset::softmax_count

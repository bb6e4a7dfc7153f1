// sliding-window: softmax over the last `window` tokens, the current one among them, and the first `sinks`. Rotary positions are
// those of the sequence: cached keys stay as they were rotated.
#include "isomer/mixers/parts.h"

namespace isomer::preset::sliding_window {

namespace {
void build(Builder& m) {
  AttentionOptions options;
  options.window = m.size("window", 128, "tokens that are seen, with the current one");
  options.sinks = m.size("sinks", 0, "tokens at the start that are always seen", 0);
  parts::attention_mixer(m, {.options = options});
}
}  // namespace

extern const Preset sliding_window{
    .name = "sliding-window",
    .source = "Beltagy et al. 2020 (arXiv 2004.05150); SWAX: Cabannes et al. 2025 (arXiv 2509.24552)",
    .summary = "softmax attention over the last tokens, and the first few",
    .build = build};

}  // namespace isomer::preset::sliding_window

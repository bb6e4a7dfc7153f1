// taylor: weights Σ_{n ≤ order} s^n / n! of s = q·k / √K. Even orders are positive for every s, so that sums of them can be
// divided by; odd ones are followed by an l2 norm instead (science P1.7). With a feature, s is linear attention's, and the orders
// above the first are the powers that the authors add to it.
#include "isomer/mixers/parts.h"

namespace isomer::preset::taylor {

namespace {
void build(Builder& m) {
  AttentionOptions options{.kernel = AttentionOptions::Kernel::taylor};
  options.order = int(m.size("order", 2, "order of the polynomial", 0));
  const std::string feature = m.choice("feature", {"none", "relu", "elu"}, "of queries and keys: max(x, 0), elu(x) + 1");
  const bool even = options.order % 2 == 0;
  parts::AttentionMixer what{.options = options, .readout = {.denominator = even ? "sum" : "none", .norm = even ? "none" : "l2"}};
  if (feature != "none") what.feature = [&](Value x) { return m.map(feature == "relu" ? Unary::relu : Unary::elu_plus_one, x); };
  parts::attention_mixer(m, what);
}
}  // namespace

extern const Preset taylor{.name = "taylor",
                           .source = "Mongaras & Larson 2025 (arXiv 2507.23632), P1.6: softmax by its Taylor orders",
                           .summary = "attention whose exponential is its Taylor polynomial",
                           .build = build};

}  // namespace isomer::preset::taylor

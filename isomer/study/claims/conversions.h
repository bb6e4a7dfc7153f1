#pragma once
// What claims about pre-trained models share: who takes the place of softmax, and how a comparison is shown.
#include "isomer/study/pretrained.h"
#include "isomer/study/trained.h"

namespace isomer::study {

/// LUNA, its relatives and InLine, each in every layer. Where a mechanism may have as many features as it likes, it has two for
/// each number of a key, as Hedgehog and cosFormer do.
[[nodiscard]] std::vector<Contender> successors(Index key, double rate);

/// LUNA recovers at least as much as Hedgehog, but for `slack`, and more than the others.
[[nodiscard]] Rule luna_leads(bool lower_is_better, double slack,
                              const std::vector<std::string>& others = {"T2R", "elu + 1", "Performer", "cosFormer"});

/// A hybrid of a language model: a linear layer and one with short windows in turn, as LoLCATs and SWAX have them.
[[nodiscard]] Contender with_windows(const std::string& name, const std::string& preset, const Overrides& options, Index layers,
                                     Index window, double rate);

/// A claim about conversions with equal training (the comparison's procedure): the published numbers, the figure of their
/// curves, what is left of softmax's score, and what is still improving. The first seed chooses learning rates. `y` is the unit
/// of the score.
[[nodiscard]] Claim converted(Claim claim, Comparison comparison, const std::string& y);

}  // namespace isomer::study

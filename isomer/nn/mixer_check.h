#pragma once
// The user's view of the proof for whole layers: every preset, with each of its options, as one small layer.
//
//   streaming   prefill and steps against forward, the sequence cut at every token
//   forms       the laws in every form they have against their reference
//   causality   what earlier outputs change by when a token does: exactly nothing
//   dsf         the laws against the dynamical systems that they are on the same inputs
//   gradient    of all parameters, the input and what comes from other layers, against central differences
#include "isomer/laws/check.h"
#include "isomer/mixers/preset.h"

namespace isomer {

/// One way of using a preset that the proof covers.
struct MixerCase {
  std::string label;  // "as it is", "position=rope"
  Settings settings = {};
  bool second = false;  // as the second of two layers
};

/// The preset as it is, as a second layer if it is another one there, and with every other choice of each option that has some;
/// small enough to be checked in no time.
[[nodiscard]] std::vector<MixerCase> mixer_cases(const Preset& preset);
/// The layer that is checked.
[[nodiscard]] graph::Graph build_small(const Preset& preset, const MixerCase& what);

/// Rows as those of laws: the worst error of a quantity over all cases.
[[nodiscard]] std::vector<CheckRow> check(const Preset& preset, Context& context, const CheckPlan& plan = {});
/// Over some of them.
[[nodiscard]] std::vector<CheckRow> check(const Preset& preset, std::span<const MixerCase> cases, Context& context,
                                          const CheckPlan& plan = {});

}  // namespace isomer

#pragma once
// isomer bench --explain and --crossover.
#include "isomer/laws/law.h"

namespace isomer::cli {

/// A table of what Form::automatic takes and how far that is from the best measured choice.
void explain(const std::vector<const Law*>& laws, Context& context, bool quick, bool json);

/// A table of the lengths at which each law becomes cheaper than softmax attention, for a model of 512 channels in heads of
/// `size`.
void crossover(const std::vector<const Law*>& laws, Context& context, Index size, bool quick, bool json);

}  // namespace isomer::cli

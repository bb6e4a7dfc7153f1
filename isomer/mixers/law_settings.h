#pragma once
// The options of a mixer's law as the text that `isomer apply` takes, for tools that work on named tensors (dsf.h, check).
#include "isomer/laws/law.h"
#include "isomer/mixers/graph.h"

namespace isomer {

/// Those that differ from what the law does without them. Numbers are read back as they were.
[[nodiscard]] Settings settings_of(const graph::Law& law);

}  // namespace isomer

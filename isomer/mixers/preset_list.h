#pragma once
// The presets of the folder presets/, as the build has found them (cmake/presets.cmake writes the source).
#include <span>

#include "isomer/mixers/preset.h"

namespace isomer::internal {

[[nodiscard]] std::span<const Preset* const> preset_list();

/// For tests: one more, which presets() has from now on. It must live on.
void add_preset(const Preset& preset);

}  // namespace isomer::internal

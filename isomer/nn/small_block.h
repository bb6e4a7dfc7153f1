#pragma once
// For tests only: mixers of eight channels, with weights that matter.
#include "isomer/mixers/preset.h"
#include "isomer/nn/init.h"
#include "isomer/nn/parameters.h"

namespace isomer::testing {

inline constexpr Index kWidth = 8;

[[nodiscard]] inline graph::Graph small_mixer(const char* preset, Index layer = 0) {
  return build_mixer(preset, {.width = kWidth, .layer = layer, .layers = 2}, {{"heads", "2"}});
}

/// Weights large enough that every part matters.
inline void draw(Parameters<double>& parameters, double factor = 20) {
  initialise(parameters, 5);
  for (const Parameter<double>& p : parameters.all())
    if (p.spec.decay == Decay::yes)
      for (double& w : p.values()) w *= factor;
}

}  // namespace isomer::testing

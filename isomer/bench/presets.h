#pragma once
// What the benches of whole mixers and of training share: which presets are timed.
#include <functional>
#include <string>
#include <vector>

#include "isomer/base/monitor.h"
#include "isomer/mixers/preset.h"

namespace isomer {

struct PresetBench {
  std::vector<std::string> presets;  // all if empty
  bool quick = false;                // fewer cases and samples
};

struct SoundPresets {
  std::string refused;  // why some were left out; empty if none was
  double peak = 0;      // GFLOP/s of sgemm, the best of those measured around every preset: other work only slows it down
};

/// time(preset) for every preset whose check as a layer passes.
[[nodiscard]] SoundPresets each_sound_preset(const PresetBench& plan, Context& context, const Monitor& monitor,
                                             const std::function<void(const Preset&)>& time);

}  // namespace isomer

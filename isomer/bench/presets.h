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

/// time(preset, peak) for every preset whose check as a layer passes, with the sgemm peak of its own minute in GFLOP/s. Why the
/// others were left out; empty if none was.
[[nodiscard]] std::string each_sound_preset(const PresetBench& plan, Context& context, const Monitor& monitor,
                                            const std::function<void(const Preset&, double)>& time);

}  // namespace isomer

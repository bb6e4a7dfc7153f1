#pragma once
// What bench --layers and --train share: which presets are timed, and what is printed of a row.
#include <functional>
#include <string>
#include <vector>

#include "cli/report.h"
#include "isomer/mixers/preset.h"

namespace isomer::cli {

struct PresetBench {
  std::vector<std::string> presets;  // all if empty
  bool quick = false, json = false;
};

/// time(preset, peak, progress) for every preset whose check as a layer passes, with the sgemm peak of its own minute in GFLOP/s.
/// Why the others were left out; empty if none was.
[[nodiscard]] std::string each_sound_preset(const PresetBench& request, Context& context,
                                            const std::function<void(const Preset&, double, const Progress&)>& time);

[[nodiscard]] std::string percent(double share);

}  // namespace isomer::cli

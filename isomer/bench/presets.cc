#include "isomer/bench/presets.h"

#include <algorithm>
#include <array>

#include "isomer/base/format.h"
#include "isomer/kernels/gemm/peak.h"
#include "isomer/nn/mixer_check.h"

namespace isomer {

namespace {
/// Why the preset must not be timed; empty if it may.
std::string red_row(const Preset& preset, Context& context) {
  const std::array<MixerCase, 1> plain{MixerCase{"as it is", {}}};
  for (const CheckRow& row : check(preset, plain, context, {.types = {Type::f32}}))
    if (!row.pass) return row.form + " " + row.quantity + " is off by " + formatted("%.1e", row.error);
  return {};
}

std::vector<const Preset*> chosen(const PresetBench& plan) {
  std::vector<const Preset*> some;
  for (const std::string& name : plan.presets) some.push_back(&find_preset(name));
  if (some.empty()) some.assign(presets().begin(), presets().end());
  return some;
}
}  // namespace

SoundPresets each_sound_preset(const PresetBench& plan, Context& context, const Monitor& monitor,
                               const std::function<void(const Preset&)>& time) {
  SoundPresets result;
  std::string& refused = result.refused;
  const auto measure = [&] {
    monitor.show("the sgemm peak");
    result.peak = std::max(result.peak, measure_peak(context));
  };
  for (const Preset* preset : chosen(plan)) {
    if (monitor.stopped()) break;
    const std::string name(preset->name);
    monitor.show("checking " + name + " before it is timed");
    if (const std::string red = red_row(*preset, context); !red.empty()) {
      refused.append(refused.empty() ? "" : "; ").append(name).append(" is not timed because its check fails: ").append(red);
      continue;
    }
    measure();
    time(*preset);
  }
  measure();
  return result;
}

}  // namespace isomer

#include "isomer/mixers/preset.h"

#include <algorithm>
#include <vector>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"
#include "isomer/mixers/builder.h"
#include "isomer/mixers/preset_list.h"

namespace isomer {

namespace {
std::vector<const Preset*> by_name(std::span<const Preset* const> list) {
  std::vector<const Preset*> sorted(list.begin(), list.end());
  std::sort(sorted.begin(), sorted.end(), [](const Preset* a, const Preset* b) { return a->name < b->name; });
  return sorted;
}

std::vector<const Preset*>& all_presets() {
  static std::vector<const Preset*> all = by_name(internal::preset_list());
  return all;
}
}  // namespace

std::span<const Preset* const> presets() { return all_presets(); }

void internal::add_preset(const Preset& preset) {
  all_presets().push_back(&preset);
  all_presets() = by_name(all_presets());
}

const Preset& find_preset(std::string_view name) {
  std::vector<std::string> names;
  for (const Preset* preset : presets()) {
    if (preset->name == name) return *preset;
    names.emplace_back(preset->name);
  }
  throw Error("unknown preset " + std::string(name) + did_you_mean(name, names));
}

graph::Graph build_mixer(const Preset& preset, const Place& place, const Settings& settings) {
  Builder builder(preset.name, place, settings);
  preset.build(builder);
  return builder.finish();
}

graph::Graph build_mixer(std::string_view preset, const Place& place, const Settings& settings) {
  return build_mixer(find_preset(preset), place, settings);
}

std::vector<MixerOption> options_of(const Preset& preset, const Place& place, const Settings& settings) {
  Builder builder(preset.name, place, settings);
  preset.build(builder);
  return builder.options();
}

}  // namespace isomer

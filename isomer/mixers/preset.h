#pragma once
// A preset is a short named spec: one file in presets/ that defines one `const Preset`, named like the file. No list is kept by
// hand: the build finds the files.
//
//   const graph::Graph gla = build_mixer("gla", {.width = 256}, {{"heads", "8"}});
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/laws/law.h"
#include "isomer/mixers/graph.h"

namespace isomer {

class Builder;

struct Preset {
  std::string_view name;
  std::string_view source;   // who, when, which equations
  std::string_view summary;  // one line: what it is
  void (*build)(Builder& m);
};

/// Where a layer stands: some presets start differently in each.
struct Place {
  Index width = 256;
  Index layer = 0, layers = 1;
  Index before = 0;  // layers of the same preset in front of it; a mixer alone is the first
};

/// All presets, by name.
[[nodiscard]] std::span<const Preset* const> presets();
/// Throws Error naming the nearest preset when there is none of that name.
[[nodiscard]] const Preset& find_preset(std::string_view name);

/// Throws Error for an unknown option (naming the nearest), a value out of range, or a combination that makes no sense.
[[nodiscard]] graph::Graph build_mixer(const Preset& preset, const Place& place, const Settings& settings = {});
[[nodiscard]] graph::Graph build_mixer(std::string_view preset, const Place& place, const Settings& settings = {});

/// The options that a preset understands, with help and with what they are here if not set.
struct MixerOption {
  enum class Kind { size, number, limit, flag, choice };
  std::string name, fallback, help;
  Kind kind = Kind::number;
  Index least = 0;                        // of a size
  std::vector<std::string> choices = {};  // of an option that is one of some words
  bool applies = true;                    // false: it has no effect beside the others, and giving it is an error
};
[[nodiscard]] std::vector<MixerOption> options_of(const Preset& preset, const Place& place, const Settings& settings = {});

}  // namespace isomer

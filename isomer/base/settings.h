#pragma once
// Options as text: what a law, a mixer or a task understands, and what the user has set.
//
//   const Index window = read_size(settings, "window", 0);   // 0 unless the user says otherwise
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/index.h"

namespace isomer {

struct OptionSpec {
  std::string_view name;
  std::string_view fallback;  // what it is when not set, as shown to users
  std::string_view help;
};

/// Options by name, as text.
using Settings = std::map<std::string, std::string, std::less<>>;

/// Throws Error for a setting that is none of the options, naming the nearest.
void require_known(std::string_view who, const Settings& settings, std::span<const OptionSpec> options);
void require_known(std::string_view who, const Settings& settings, std::span<const std::string> names);

/// The whole text as a number; false, and `value` as it was, if it is none of that type.
[[nodiscard]] bool parse_number(std::string_view text, double& value);
[[nodiscard]] bool parse_number(std::string_view text, Index& value);
[[nodiscard]] bool parse_number(std::string_view text, std::uint64_t& value);

/// What stands between separators; nothing behind the last one.
[[nodiscard]] std::vector<std::string> split(const std::string& text, char separator);

// Readers of options. Each throws Error with what was expected when the text does not parse.
[[nodiscard]] bool read_bool(const Settings& settings, std::string_view name, bool fallback);
[[nodiscard]] double read_number(const Settings& settings, std::string_view name, double fallback);
/// A number, or inf for none; inf unless it is set.
[[nodiscard]] double read_limit(const Settings& settings, std::string_view name);
[[nodiscard]] Index read_size(const Settings& settings, std::string_view name, Index fallback);
/// The position of the setting's text among `choices` (the fallback is the first).
[[nodiscard]] int read_choice(const Settings& settings, std::string_view name, std::span<const std::string_view> choices);

}  // namespace isomer

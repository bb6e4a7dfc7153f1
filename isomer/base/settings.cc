#include "isomer/base/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"

namespace isomer {

namespace {
/// The setting's text, or null.
const std::string* text_of(const Settings& settings, std::string_view name) {
  const auto found = settings.find(name);
  return found == settings.end() ? nullptr : &found->second;
}

template <class T>
bool parse(std::string_view text, T& value) {
  T number{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return false;
  value = number;
  return true;
}
}  // namespace

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream all(text);
  for (std::string part; std::getline(all, part, separator);) parts.push_back(part);
  return parts;
}

bool parse_number(std::string_view text, double& value) { return parse(text, value); }
bool parse_number(std::string_view text, std::uint64_t& value) { return parse(text, value); }

bool parse_number(std::string_view text, Index& value) {
  if (parse(text, value)) return true;
  // 1e3 is a whole number, too.
  constexpr double kMost = 9007199254740992.0;  // up to 2^53 doubles leave no whole number out
  double number = 0;
  if (text.find_first_of("eE") == std::string_view::npos || !parse(text, number)) return false;
  if (!(std::abs(number) <= kMost) || std::trunc(number) != number) return false;
  value = Index(number);
  return true;
}

void require_known(std::string_view who, const Settings& settings, std::span<const OptionSpec> options) {
  std::vector<std::string> names;
  for (const OptionSpec& option : options) names.emplace_back(option.name);
  require_known(who, settings, names);
}

void require_known(std::string_view who, const Settings& settings, std::span<const std::string> names) {
  for (const auto& [name, value] : settings)
    require(std::find(names.begin(), names.end(), name) != names.end(), std::string(who).c_str(), "unknown option ", name,
            did_you_mean(name, names));
}

bool read_bool(const Settings& settings, std::string_view name, bool fallback) {
  const std::string* text = text_of(settings, name);
  if (text == nullptr) return fallback;
  require(*text == "true" || *text == "false", std::string(name).c_str(), "expected true or false, got ", *text);
  return *text == "true";
}

double read_number(const Settings& settings, std::string_view name, double fallback) {
  const std::string* text = text_of(settings, name);
  if (text == nullptr) return fallback;
  double value = 0;
  require(parse_number(*text, value) && std::isfinite(value), std::string(name).c_str(), "expected a finite number, got ", *text);
  return value;
}

double read_limit(const Settings& settings, std::string_view name) {
  double value = std::numeric_limits<double>::infinity();
  const std::string* text = text_of(settings, name);
  if (text == nullptr) return value;
  // False for -inf and NaN.
  require(parse_number(*text, value) && value >= std::numeric_limits<double>::lowest(), std::string(name).c_str(),
          "expected a number or inf, got ", *text);
  return value;
}

Index read_size(const Settings& settings, std::string_view name, Index fallback) {
  const std::string* text = text_of(settings, name);
  if (text == nullptr) return fallback;
  Index value = 0;
  require(parse_number(*text, value) && value >= 0, std::string(name).c_str(), "expected a whole number >= 0, got ", *text);
  return value;
}

int read_choice(const Settings& settings, std::string_view name, std::span<const std::string_view> choices) {
  const std::string* text = text_of(settings, name);
  if (text == nullptr) return 0;
  std::string all;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == *text) return int(i);
    all += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + std::string(choices[i]);
  }
  fail(std::string(name).c_str(), "expected ", all, ", got ", *text);
}

}  // namespace isomer

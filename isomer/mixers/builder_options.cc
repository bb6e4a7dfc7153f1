// The options of a preset: reading one declares it.
#include <charconv>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/mixers/builder.h"

namespace isomer {

namespace {
// Far above any layer that fits into memory, and far below where products of sizes overflow.
constexpr Index kLargest = Index{1} << 20;

/// The shortest text that reads back as the same number; 500000, not 5e+05.
std::string text_of(double x) {
  char text[64];
  const bool plain = x == 0 || (std::abs(x) >= 1e-4 && std::abs(x) < 1e15);
  return {text, std::to_chars(text, text + sizeof text, x, plain ? std::chars_format::fixed : std::chars_format::general).ptr};
}

std::string text_of(bool x) { return x ? "true" : "false"; }
}  // namespace

Builder::Builder(std::string_view preset, const Place& place, const Settings& settings) : place_(place), settings_(settings) {
  graph_.preset = preset;
  graph_.width = place.width;
  require(place.width >= 1 && place.width <= kLargest, this->preset(), "expected a width from 1 to ", kLargest, ", got ",
          place.width);
  require(place.layer >= 0 && place.layer < place.layers, this->preset(), "expected a layer of ", place.layers, ", got ",
          place.layer);
  require(place.before >= 0 && place.before <= place.layer, this->preset(), "expected at most ", place.layer,
          " of its preset before it, got ", place.before);
}

using Kind = MixerOption::Kind;

const std::string* Builder::declare(std::string_view name, std::string fallback, std::string_view help, Kind kind) {
  for ([[maybe_unused]] const MixerOption& other : options_) ISOMER_ASSERT(other.name != name, "an option is declared once");
  options_.push_back({.name = std::string(name), .fallback = std::move(fallback), .help = std::string(help), .kind = kind});
  const auto given = settings_.find(name);
  return given == settings_.end() ? nullptr : &given->second;
}

Index Builder::size(std::string_view name, Index fallback, std::string_view help, Index least) {
  Index value = fallback;
  const std::string* text = declare(name, std::to_string(fallback), help, Kind::size);
  options_.back().least = least;
  if (text != nullptr) {
    require(parse_number(*text, value) && value >= least && value <= kLargest, options_.back().name.c_str(),
            "expected a whole number from ", least, " to ", kLargest, ", got ", *text);
  }
  resolve(std::to_string(value));
  return value;
}

double Builder::number(std::string_view name, double fallback, std::string_view help) {
  (void)declare(name, text_of(fallback), help, Kind::number);
  const double value = read_number(settings_, name, fallback);
  resolve(text_of(value));
  return value;
}

double Builder::limit(std::string_view name, std::string_view help) {
  (void)declare(name, "inf", help, Kind::limit);
  const double value = read_limit(settings_, name);
  resolve(text_of(value));
  return value;
}

bool Builder::flag(std::string_view name, bool fallback, std::string_view help) {
  (void)declare(name, text_of(fallback), help, Kind::flag);
  const bool value = read_bool(settings_, name, fallback);
  resolve(text_of(value));
  return value;
}

std::string Builder::choice(std::string_view name, std::initializer_list<std::string_view> choices, std::string_view help,
                            std::string_view fallback) {
  if (fallback.empty()) fallback = *choices.begin();
  std::string all;
  for (std::string_view choice : choices) all.append(all.empty() ? "" : " | ").append(choice);
  const std::string* given = declare(name, std::string(fallback), std::string(help) + ": " + all, Kind::choice);
  options_.back().choices.assign(choices.begin(), choices.end());
  const std::vector<std::string_view> list(choices);
  std::string value(given == nullptr ? fallback : list[std::size_t(read_choice(settings_, name, list))]);
  resolve(value);
  return value;
}

void Builder::only_with(bool used, std::string_view with, std::initializer_list<std::string_view> names) {
  if (used) return;
  for (std::string_view name : names) {
    require(settings_.find(name) == settings_.end(), preset(), "option ", name, " has no effect without ", with);
    for (MixerOption& option : options_)
      if (option.name == name) option.applies = false;
  }
}

Builder::HeadSizes Builder::head_sizes(const HeadDefaults& fallback) {
  const Index heads = size("heads", fallback.heads, "heads");
  const auto each = [&](const char* name, const char* help, Index total, Index own) {
    if (own == 0) {
      if (total == 0) total = width();
      Index nearest = heads;
      while (total % nearest != 0) --nearest;
      const bool given = settings_.find(name) != settings_.end();
      require(given || nearest == heads, preset(), "expected heads that divide the ", name, " width of ", total, ", got ", heads,
              "; heads=", nearest, " is the nearest below");
      own = total / heads;
    }
    return size(name, own, help);
  };
  const Index key = each("key", "size of a head's keys", fallback.key_total, fallback.key);
  return {heads, key, each("value", "size of a head's values", fallback.value_total, fallback.value)};
}

graph::Graph Builder::finish() {
  std::vector<std::string> names;
  for (const MixerOption& option : options_) names.push_back(option.name);
  require_known(preset(), settings_, names);
  ISOMER_ASSERT(output_.present(), "a preset ends with output()");
  drop_unused();
  return std::move(graph_);
}

}  // namespace isomer

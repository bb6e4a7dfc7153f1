#pragma once
// The options of a law as one table, from which reading, writing back and help come.
//
//   const OptionTable<DeltaOptions> kOptions{{option<&DeltaOptions::scale>("scale", "factor of the outputs", "K^-1/2"),
//                                             option<&DeltaOptions::l2norm>("l2norm", "q and k of length one")}};
//   const DeltaOptions options = kOptions.read(settings);
//   const Settings text = kOptions.write(options);          // defaults are left out; every bit comes back
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "isomer/base/settings.h"

namespace isomer {

namespace internal {
[[nodiscard]] inline std::string text_of(double number) {
  std::array<char, 32> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
}
template <class>
struct Member;
template <class Owner, class Held>
struct Member<Held Owner::*> {
  using owner = Owner;
  using value = Held;
};
}  // namespace internal

template <class Options>
struct OptionRow {
  std::string_view name, help;
  std::string_view fallback = {};                // as shown; empty: the text of the default
  std::span<const std::string_view> words = {};  // of an enumeration, in its order
  void (*read)(const OptionRow&, const Settings&, Options&) = nullptr;
  std::string (*write)(const OptionRow&, const Options&) = nullptr;  // empty: not set
};

/// `words`: the names of an enumeration's values; {"true", "false"} makes a flag of it.
template <auto member, class Of = internal::Member<decltype(member)>, class Row = OptionRow<typename Of::owner>>
[[nodiscard]] Row option(std::string_view name, std::string_view help, std::string_view fallback = {},
                         std::span<const std::string_view> words = {}) {
  using Held = typename Of::value;
  using Options = typename Of::owner;
  Row row{name, help, fallback, words};
  row.read = [](const Row& own, const Settings& settings, Options& to) {
    Held& value = to.*member;
    if constexpr (std::is_same_v<Held, std::optional<double>>) {
      if (settings.contains(own.name)) value = read_number(settings, own.name, 0);
    } else if constexpr (std::is_same_v<Held, double>) {
      value = std::isinf(value) ? read_limit(settings, own.name) : read_number(settings, own.name, value);
    } else if constexpr (std::is_same_v<Held, bool>) {
      value = read_bool(settings, own.name, value);
    } else if constexpr (std::is_enum_v<Held>) {
      const bool flag = own.words[0] == "true";
      value = Held(flag ? (read_bool(settings, own.name, true) ? 0 : 1) : read_choice(settings, own.name, own.words));
    } else {
      value = Held(read_size(settings, own.name, Index(value)));
    }
  };
  row.write = [](const Row& own, const Options& from) -> std::string {
    const Held& value = from.*member;
    if constexpr (std::is_same_v<Held, std::optional<double>>)
      return value ? internal::text_of(*value) : "";
    else if constexpr (std::is_same_v<Held, double>)
      return internal::text_of(value);
    else if constexpr (std::is_same_v<Held, bool>)
      return value ? "true" : "false";
    else if constexpr (std::is_enum_v<Held>)
      return std::string(own.words[std::size_t(value)]);
    else
      return std::to_string(value);
  };
  return row;
}

template <class Options>
class OptionTable {
 public:
  explicit OptionTable(std::vector<OptionRow<Options>> rows) : rows_(std::move(rows)) {
    for (const auto& row : rows_) defaults_.push_back(row.write(row, Options{}));
    for (std::size_t i = 0; i < rows_.size(); ++i)
      specs_.push_back({rows_[i].name, rows_[i].fallback.empty() ? defaults_[i] : rows_[i].fallback, rows_[i].help});
  }
  OptionTable(const OptionTable&) = delete;

  [[nodiscard]] std::span<const OptionSpec> specs() const { return specs_; }
  [[nodiscard]] Options read(const Settings& settings) const {
    Options options;
    for (const auto& row : rows_) row.read(row, settings, options);
    return options;
  }
  [[nodiscard]] Settings write(const Options& options) const {
    Settings settings;
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (std::string text = rows_[i].write(rows_[i], options); text != defaults_[i])
        settings.emplace(rows_[i].name, std::move(text));
    return settings;
  }

 private:
  std::vector<OptionRow<Options>> rows_;
  std::vector<std::string> defaults_;
  std::vector<OptionSpec> specs_;
};

}  // namespace isomer

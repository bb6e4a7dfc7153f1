#pragma once
// A TOML file as a list of keys with the lines they stand on, so that every mistake can be named where it is.
//
//   const TomlFile file = read_toml("recipe.toml");
//   const TomlEntry& first = file.entries[0];  // key "train.steps", text "1000", line 12
#include <string>
#include <string_view>
#include <vector>

namespace isomer {

/// One key. An array of strings or numbers is in `items`; anything else is text as in `--set key=text`.
struct TomlEntry {
  std::string key;  // with dots: table.key
  std::string text;
  std::vector<std::string> items = {};
  bool is_array = false;
  int line = 0;
};

struct TomlFile {
  std::string name;  // for messages
  std::vector<TomlEntry> entries;
};

/// Throws Error "FILE:LINE: …" for what is not TOML, and for dates and arrays of tables, which no file of ours has.
[[nodiscard]] TomlFile read_toml(const std::string& path);
[[nodiscard]] TomlFile parse_toml(std::string_view text, const std::string& name);

/// The shortest text that reads back as the same number.
[[nodiscard]] std::string toml_number(double value);
/// Text as a TOML string, with quotes.
[[nodiscard]] std::string toml_quoted(std::string_view text);
/// Text as what it reads as: true, false, a number, or else a string.
[[nodiscard]] std::string toml_value(std::string_view text);

}  // namespace isomer

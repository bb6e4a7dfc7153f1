#include "isomer/io/toml.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "isomer/base/error.h"
#include "isomer/io/text.h"

namespace isomer {

namespace {
[[noreturn]] void fail_at(const std::string& name, unsigned line, const std::string& what) {
  throw Error(name + ":" + std::to_string(line) + ": " + what);
}

std::string text_of(const toml::node& node, const std::string& name, const std::string& key) {
  if (const auto* s = node.as_string()) return s->get();
  if (const auto* i = node.as_integer()) return std::to_string(i->get());
  if (const auto* b = node.as_boolean()) return b->get() ? "true" : "false";
  if (const auto* f = node.as_floating_point()) return toml_number(f->get());
  fail_at(name, node.source().begin.line, "expected text, a number, true or false for " + key);
}

void collect(const toml::table& table, const std::string& prefix, TomlFile& file) {
  for (const auto& [short_key, node] : table) {
    const std::string key = prefix + std::string(short_key.str());
    if (const auto* inner = node.as_table()) {
      collect(*inner, key + ".", file);
      continue;
    }
    TomlEntry entry{.key = key, .text = {}, .line = int(node.source().begin.line)};
    if (const auto* array = node.as_array()) {
      entry.is_array = true;
      for (const toml::node& item : *array) entry.items.push_back(text_of(item, file.name, key));
    } else {
      entry.text = text_of(node, file.name, key);
    }
    file.entries.push_back(std::move(entry));
  }
}
}  // namespace

TomlFile parse_toml(std::string_view text, const std::string& name) {
  TomlFile file{.name = name, .entries = {}};
  try {
    collect(toml::parse(text, name), "", file);
  } catch (const toml::parse_error& problem) {
    fail_at(name, problem.source().begin.line, std::string(problem.description()));
  }
  std::stable_sort(file.entries.begin(), file.entries.end(),
                   [](const TomlEntry& a, const TomlEntry& b) { return a.line < b.line; });
  return file;
}

TomlFile read_toml(const std::string& path) { return parse_toml(read_text(path), path); }

std::string toml_number(double value) {
  std::array<char, 32> text{};
  const auto [end, problem] = std::to_chars(text.data(), text.data() + text.size(), value);
  ISOMER_ASSERT(problem == std::errc(), "the shortest text of a number has at most 24 characters");
  return {text.data(), end};
}

std::string toml_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string toml_value(std::string_view text) {
  if (text == "true" || text == "false") return std::string(text);
  std::int64_t whole = 0;
  double number = 0;
  const auto all = [&](auto& value) {
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc() && end == text.data() + text.size();
  };
  if (all(whole)) return std::to_string(whole) == text ? std::string(text) : toml_quoted(text);  // 007 is no number
  if (!all(number) || !std::isfinite(number)) return toml_quoted(text);
  return toml_number(number);
}

}  // namespace isomer

#include "isomer/io/table.h"

#include <algorithm>
#include <string_view>

namespace isomer {

namespace {
/// Characters, not bytes: µ is one.
std::size_t width_of(std::string_view text) {
  return std::size_t(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

enum class Look { blank, number, words };
Look look_of(std::string_view cell) {
  if (cell.empty()) return Look::blank;
  return cell[0] == '-' || (cell[0] >= '0' && cell[0] <= '9') ? Look::number : Look::words;
}

using CsvRow = std::vector<std::pair<std::string, std::string>>;

std::string csv_value(const Json& value) {
  if (value.is_null()) return "";
  std::string text = value.is_string() ? value.text() : value.dump();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

void flatten(const Json& object, const std::string& prefix, CsvRow& row) {
  for (const auto& [name, value] : object.members()) {
    if (value.is_object())
      flatten(value, prefix + name + ".", row);
    else
      row.emplace_back(prefix + name, csv_value(value));
  }
}
}  // namespace

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  std::vector<Look> looks(rows[0].size(), Look::blank);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(row[i]));
      if (&row != &rows[0]) looks[i] = std::max(looks[i], look_of(row[i]));
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width_of(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (looks[i] == Look::number ? space + row[i] : row[i] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string aligned(const Cells& like, const std::vector<Cells>& rows) {
  std::vector<std::vector<std::string>> all(1);
  for (const Cell& cell : like) all[0].push_back(cell.head);
  for (const Cells& row : rows) {
    all.emplace_back();
    for (const Cell& cell : row) all.back().push_back(cell.text);
  }
  return aligned(all);
}

Json to_json(const Machine& machine) {
  return Json::object({{"cpu", machine.cpu},
                       {"isa", machine.isa},
                       {"cores", machine.cores},
                       {"threads", machine.threads},
                       {"compiler", machine.compiler},
                       {"version", machine.version}});
}

Json table_json(const Machine& machine, Json rows) {
  return Json::object({{"schema", kTableSchema}, {"machine", to_json(machine)}, {"rows", std::move(rows)}});
}

std::string table_csv(const Json& rows) {
  std::vector<CsvRow> all;
  std::vector<std::string> names;
  for (const Json& row : rows.items()) {
    all.emplace_back();
    flatten(row, "", all.back());
    for (const auto& [name, value] : all.back())
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string text;
  const auto add_line = [&](const auto& cell) {
    for (std::size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : ",") + cell(names[i]);
    text += '\n';
  };
  add_line([](const std::string& name) { return csv_value(name); });
  for (const CsvRow& row : all)
    add_line([&](const std::string& name) {
      const auto found = std::find_if(row.begin(), row.end(), [&](const auto& one) { return one.first == name; });
      return found == row.end() ? std::string() : found->second;
    });
  return text;
}

}  // namespace isomer

#pragma once
// Tables of results, written in one place: as JSON for programs, as CSV for spreadsheets, as aligned text for people.
//
// A row is a type with two functions beside it:
//   Json to_json(const LawRow& row);       // its members, under names that stay: what is added is added, nothing is renamed
//   Cells cells_of(const LawRow& row);     // what a reader sees of it
// so that
//   const Json json = table_json(machine_of(context), rows_json(rows));  // {"schema": 1, "machine": …, "rows": …}
//   const std::string text = table_text(rows);                           // headings and rows
//   const std::string csv = table_csv(rows_json(rows));
#include <string>
#include <vector>

#include "isomer/base/machine.h"
#include "isomer/io/json.h"

namespace isomer {

/// Goes up when a member of a row is renamed, goes away or changes its meaning.
inline constexpr int kTableSchema = 1;

struct Cell {
  std::string head, text;
};
using Cells = std::vector<Cell>;

/// Text in columns, the first row above the others; a column of numbers is aligned to the right.
[[nodiscard]] std::string aligned(const std::vector<std::vector<std::string>>& rows);
/// The rows below the headings of `like`.
[[nodiscard]] std::string aligned(const Cells& like, const std::vector<Cells>& rows);

template <class Row>
[[nodiscard]] std::string table_text(const std::vector<Row>& rows) {
  std::vector<Cells> all;
  all.reserve(rows.size());
  for (const Row& row : rows) all.push_back(cells_of(row));
  return aligned(rows.empty() ? cells_of(Row{}) : all.front(), all);
}

template <class Row>
[[nodiscard]] Json rows_json(const std::vector<Row>& rows) {
  Json all = Json::array();
  for (const Row& row : rows) all.push(to_json(row));
  return all;
}

[[nodiscard]] Json to_json(const Machine& machine);
/// {"schema", "machine", "rows"}
[[nodiscard]] Json table_json(const Machine& machine, Json rows);
/// A line of names and a line for each row; a column for every member that one of them has, empty where a row has it not. Members
/// of a member are columns of their own ("set.lr"); lists are JSON.
[[nodiscard]] std::string table_csv(const Json& rows);

}  // namespace isomer

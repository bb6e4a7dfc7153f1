#pragma once
// What the commands print: tables and progress.
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "isomer/base/format.h"
#include "isomer/base/monitor.h"
#include "isomer/io/table.h"

namespace isomer::cli {

/// Text in columns; a column of numbers is aligned to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// To standard output.
  void print() const { std::cout << aligned(rows_); }

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// One line on a terminal that is overwritten, and gone at the end; nothing when stderr is no terminal.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::string_view text) const;
  /// For work of the library.
  [[nodiscard]] Monitor monitor() const {
    return {.progress = [this](const std::string& what) { show(what); }};
  }

 private:
  bool terminal_;
};

/// While it lives, a reader of standard output or standard error that goes away (`| head`) does not end the program, and what it
/// would have read is no loss: for commands whose results are files. A disk that is full still is a failure.
class OutlivesItsReader {
 public:
  OutlivesItsReader();
  ~OutlivesItsReader();
  OutlivesItsReader(const OutlivesItsReader&) = delete;
  OutlivesItsReader& operator=(const OutlivesItsReader&) = delete;
};

/// {"schema": 1, "machine": …, "rows": …} on standard output.
void print_json(const Context& context, Json rows);

/// As the user wants them: as JSON, as comma-separated values, or `text`.
void print_rows(const Context& context, const Json& rows, const TableOutput& output, const std::string& text);

template <class Row>
void print_rows(const Context& context, const std::vector<Row>& rows, const TableOutput& output) {
  print_rows(context, rows_json(rows), output, output.for_people() ? table_text(rows) : "");
}

/// A word as a shell takes it.
[[nodiscard]] std::string quoted(const std::string& word);
/// What goes on with the run in a folder.
[[nodiscard]] std::string resume_command(const std::string& folder);

}  // namespace isomer::cli

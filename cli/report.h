#pragma once
// What the commands print: tables, progress, and the machine they ran on.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/context.h"

namespace isomer::cli {

/// Text in columns; a column of numbers is aligned to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// To standard output.
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// A number in the style of printf.
[[nodiscard]] std::string formatted(const char* format, double x);

/// With four digits.
[[nodiscard]] std::string text_of(double x);

/// Minutes and seconds, with hours in front if there are any.
[[nodiscard]] std::string clock_of(double seconds);

/// One line on a terminal that is overwritten, and gone at the end; nothing when stderr is no terminal.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::string_view text) const;

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

/// The most memory that the process has taken so far.
[[nodiscard]] long peak_memory_mib();

/// What the machine has, or what the process may take of it (a control group).
[[nodiscard]] double machine_memory_bytes();
/// "1.5 GiB", "300 MiB".
[[nodiscard]] std::string bytes_text(double bytes);

/// {"schema": 1, "machine": …, "rows": …}
[[nodiscard]] nlohmann::ordered_json table_json(const Context& context, const nlohmann::ordered_json& rows);
/// The same on standard output.
void print_json(const Context& context, const nlohmann::ordered_json& rows);

}  // namespace isomer::cli

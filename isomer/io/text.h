#pragma once
// Whole files as text.
#include <string>
#include <string_view>
#include <vector>

namespace isomer {

/// Throws Error "cannot read PATH: reason", as for a file of more than so many bytes.
[[nodiscard]] std::string read_text(const std::string& path, std::size_t most = std::string::npos);
/// The same a line at a time, without the ends of lines.
[[nodiscard]] std::vector<std::string> read_lines(const std::string& path);
/// The file appears whole or stays as it was. Throws Error "cannot write PATH: reason".
void write_text(const std::string& path, std::string_view text);
/// The same for a file that is not there yet. False where there is one, which stays: of several that write it at once, one does.
[[nodiscard]] bool write_new_text(const std::string& path, std::string_view text);

}  // namespace isomer

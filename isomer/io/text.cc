#include "isomer/io/text.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "isomer/base/error.h"
#include "isomer/io/atomic_file.h"

namespace isomer {

std::string read_text(const std::string& path, std::size_t most) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  for (std::array<char, 4096> part{}; in.is_open() && (in.read(part.data(), part.size()) || in.gcount() > 0);) {
    text.append(part.data(), std::size_t(in.gcount()));
    if (text.size() > most)
      throw Error("cannot read " + path + ": expected at most " + std::to_string(most) + " bytes, got more");
  }
  // A folder can be opened, and only reading it fails.
  if (!in.is_open() || in.bad())
    throw Error("cannot read " + path + ": " + std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
  return text;
}

std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

void write_text(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

bool write_new_text(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  return file.commit_new();
}

}  // namespace isomer

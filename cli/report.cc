#include "cli/report.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace isomer::cli {

namespace {
/// Not cut within a character of several bytes.
std::string_view first_characters(std::string_view text, std::size_t most) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && characters++ == most) return text.substr(0, i);
  return text;
}
}  // namespace

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (terminal_) std::fputs("\r\033[K", stderr);
}

void Progress::show(std::string_view text) const {
  if (!terminal_) return;
  // A line that wraps could not be overwritten.
  winsize window{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0) text = first_characters(text, window.ws_col - 1u);
  std::fprintf(stderr, "\r\033[K%.*s", int(text.size()), text.data());
  std::fflush(stderr);
}

OutlivesItsReader::OutlivesItsReader() { std::signal(SIGPIPE, SIG_IGN); }

OutlivesItsReader::~OutlivesItsReader() {
  pollfd output{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  if (::poll(&output, 1, 0) != 1 || (output.revents & POLLERR) == 0) return;
  // What still waits in buffers goes nowhere.
  if (const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) {
    ::dup2(nowhere, STDOUT_FILENO);
    ::close(nowhere);
  }
  std::clearerr(stdout);
  std::cout.clear();
}

void print_json(const Context& context, Json rows) {
  std::cout << table_json(machine_of(context), std::move(rows)).dump() << '\n';
}

void print_rows(const Context& context, const Json& rows, const TableOutput& output, const std::string& text) {
  if (output.json) return print_json(context, rows);
  std::cout << (output.csv ? table_csv(rows) : text);
}

std::string quoted(const std::string& word) {
  if (word.find_first_of(" \t\n\"'\\$`*?[](){}<>|&;#~!") == std::string::npos && !word.empty()) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::string resume_command(const std::string& folder) {
  return "isomer train " + quoted(folder + "/recipe.toml") + " --out " + quoted(folder) + " --resume";
}

}  // namespace isomer::cli

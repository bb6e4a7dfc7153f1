#include "cli/report.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

namespace isomer::cli {

namespace {
/// Characters, not bytes: µ is one.
std::size_t width_of(std::string_view text) {
  return std::size_t(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string_view first_characters(std::string_view text, std::size_t most) {
  while (width_of(text) > most) text.remove_suffix(1);
  return text;
}

bool numeric(std::string_view cell) { return !cell.empty() && (cell[0] == '-' || (cell[0] >= '0' && cell[0] <= '9')); }

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  return "unknown";
}

nlohmann::ordered_json machine(const Context& context) {
#ifdef __clang__
  const std::string compiler = "Clang " __clang_version__;
#else
  const std::string compiler = "GCC " __VERSION__;
#endif
  return {{"cpu", cpu_name()},
          {"isa", name_of(context.isa())},
          {"cores", std::thread::hardware_concurrency()},
          {"threads", context.threads()},
          {"compiler", compiler},
          {"version", ISOMER_VERSION}};
}
}  // namespace

void Table::print() const {
  std::vector<std::size_t> widths(rows_[0].size(), 0);
  std::vector<bool> right(rows_[0].size(), rows_.size() > 1);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(row[i]));
      if (&row != &rows_[0] && !numeric(row[i])) right[i] = false;
    }
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width_of(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (right[i] ? space + row[i] : row[i] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::cout << line << '\n';
  }
}

std::string formatted(const char* format, double x) {
  char text[64];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

std::string text_of(double x) { return formatted("%.4g", x); }

std::string clock_of(double seconds) {
  const auto s = static_cast<long>(seconds);
  const auto two_digits = [](long n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  if (s < 3600) return std::to_string(s / 60) + ":" + two_digits(s % 60);
  return std::to_string(s / 3600) + ":" + two_digits(s / 60 % 60) + ":" + two_digits(s % 60);
}

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

long peak_memory_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

double machine_memory_bytes() {
  const double all = double(::sysconf(_SC_PHYS_PAGES)) * double(::sysconf(_SC_PAGESIZE));
  double most = 0;
  std::ifstream group("/sys/fs/cgroup/memory.max");
  return group >> most ? std::min(all, most) : all;
}

std::string bytes_text(double bytes) {
  constexpr double kMebibyte = 1 << 20, kGibibyte = 1 << 30;
  if (bytes >= kGibibyte) return formatted("%.1f", bytes / kGibibyte) + " GiB";
  return formatted(bytes < 10 * kMebibyte ? "%.1f" : "%.0f", bytes / kMebibyte) + " MiB";
}

nlohmann::ordered_json table_json(const Context& context, const nlohmann::ordered_json& rows) {
  return {{"schema", 1}, {"machine", machine(context)}, {"rows", rows}};
}

void print_json(const Context& context, const nlohmann::ordered_json& rows) {
  std::cout << table_json(context, rows).dump() << '\n';
}

}  // namespace isomer::cli

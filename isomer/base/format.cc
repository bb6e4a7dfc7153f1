#include "isomer/base/format.h"

#include <cstdio>

namespace isomer {

std::string formatted(const char* format, double x) {
  char text[64];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

std::string text_of(double x) { return formatted("%.4g", x); }

std::string percent(double share) { return formatted("%.0f%%", 100 * share); }

std::string clock_of(double seconds) {
  const auto s = static_cast<long>(seconds);
  char text[64];
  if (s < 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld", s / 60, s % 60);
  else
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  return text;
}

std::string bytes_text(double bytes) {
  constexpr double kMebibyte = 1 << 20, kGibibyte = 1 << 30;
  if (bytes >= kGibibyte) return formatted("%.1f", bytes / kGibibyte) + " GiB";
  return formatted(bytes < 10 * kMebibyte ? "%.1f" : "%.0f", bytes / kMebibyte) + " MiB";
}

}  // namespace isomer

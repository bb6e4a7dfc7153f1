#pragma once
// Numbers as people read them.
#include <string>

namespace isomer {

/// In the style of printf.
[[nodiscard]] std::string formatted(const char* format, double x);
/// With four digits.
[[nodiscard]] std::string text_of(double x);
/// "42%"
[[nodiscard]] std::string percent(double share);
/// Minutes and seconds, with hours in front if there are any.
[[nodiscard]] std::string clock_of(double seconds);
/// "1.5 GiB", "300 MiB".
[[nodiscard]] std::string bytes_text(double bytes);

}  // namespace isomer

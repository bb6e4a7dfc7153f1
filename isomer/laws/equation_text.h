#pragma once
// Pieces of the laws' equations in ASCII.
#include <cstdio>
#include <optional>
#include <string>

namespace isomer::equation_text {

[[nodiscard]] inline std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", x);
  return text;
}
/// "K^-1/2 ", "0.5 " or nothing.
[[nodiscard]] inline std::string factor(const std::optional<double>& scale) {
  if (!scale) return "K^-1/2 ";
  return *scale == 1 ? "" : number(*scale) + " ";
}

}  // namespace isomer::equation_text

#pragma once
// Shapes in the errors of entry points.
#include <array>
#include <sstream>
#include <string>

#include "isomer/base/error.h"
#include "isomer/base/index.h"

namespace isomer {

/// "[2, 3, 4]"
template <std::size_t R>
[[nodiscard]] std::string shape_text(const std::array<Index, R>& shape) {
  std::ostringstream text;
  text << '[';
  for (std::size_t axis = 0; axis < R; ++axis) text << (axis == 0 ? "" : ", ") << shape[axis];
  text << ']';
  return text.str();
}

template <std::size_t R>
void check_shape(const char* op, const char* name, const std::array<Index, R>& got, const std::array<Index, R>& want) {
  if (got != want) fail(op, "expected ", name, " ", shape_text(want), ", got ", shape_text(got));
}

}  // namespace isomer

#pragma once
// What an Error says, for the tests of error texts.
//
//   EXPECT_EQ(tests::error_of([&] { matmul(a, b, c, context); }), "matmul: expected …, got …");
#include <string>

#include "isomer/base/error.h"

namespace isomer::tests {

/// "no error" if the call throws none.
[[nodiscard]] std::string error_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace isomer::tests

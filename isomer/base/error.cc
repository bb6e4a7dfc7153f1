#include "isomer/base/error.h"

#include <cstdio>
#include <cstdlib>

namespace isomer::internal {

void assertion_failed(const char* file, int line, const char* sentence) noexcept {
  std::fprintf(stderr, "isomer: %s:%d: this should never happen: %s\n", file, line, sentence);
  std::abort();
}

}  // namespace isomer::internal

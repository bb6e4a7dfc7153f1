#include "isomer/base/error.h"

#include <cstdio>
#include <cstdlib>

namespace isomer::internal {

void Part::append_to(std::string& all) const {
  switch (kind_) {
    case Kind::text: all += text_; return;
    case Kind::integer: all += std::to_string(integer_); return;
    case Kind::size: all += std::to_string(size_); return;
    case Kind::number:
      char digits[32];
      std::snprintf(digits, sizeof digits, "%g", number_);
      all += digits;
      return;
  }
}

void fail(const char* op, std::initializer_list<Part> parts) {
  std::string text = op;
  text += ": ";
  for (const Part& part : parts) part.append_to(text);
  throw Error(text);
}

void assertion_failed(const char* file, int line, const char* sentence) noexcept {
  std::fprintf(stderr, "isomer: %s:%d: this should never happen: %s\n", file, line, sentence);
  std::abort();
}

}  // namespace isomer::internal

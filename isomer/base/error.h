#pragma once
// The two kinds of failure.
//   Error          the caller's mistake (shape, option, file); thrown only by public entry points; text "op: expected …, got …".
//   ISOMER_ASSERT  our mistake; prints one sentence and stops. Compiled out in the release preset.
#include <sstream>
#include <stdexcept>
#include <string>

namespace isomer {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws `Error("op: " + parts…)`.
template <class... Parts>
[[noreturn]] void fail(const char* op, const Parts&... parts) {
  std::ostringstream text;
  text << op << ": ";
  (text << ... << parts);
  throw Error(text.str());
}

/// require(k.shape[3] == q.shape[3], "attention", "expected k with K = ", K, ", got ", k.shape[3]);
template <class... Parts>
void require(bool condition, const char* op, const Parts&... parts) {
  if (!condition) fail(op, parts...);
}

namespace internal {
[[noreturn]] void assertion_failed(const char* file, int line, const char* sentence) noexcept;
}

}  // namespace isomer

#ifdef ISOMER_ASSERTIONS
#define ISOMER_ASSERT(condition, sentence) \
  ((condition) ? void(0) : ::isomer::internal::assertion_failed(__FILE__, __LINE__, sentence))
#else
#define ISOMER_ASSERT(condition, sentence) void(0)
#endif

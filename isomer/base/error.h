#pragma once
// The two kinds of failure.
//   Error          the caller's mistake (shape, option, file); thrown only by public entry points; text "op: expected …, got …".
//   ISOMER_ASSERT  our mistake; prints one sentence and stops. On in every build unless ISOMER_NO_ASSERTIONS is defined; it
//                  stands where work is handed out, never inside a kernel (docs/decisions/0016).
#include <concepts>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

namespace isomer {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace internal {
/// A piece of an error's text. It lives as long as what it was made of.
class Part {
 public:
  // NOLINTBEGIN(google-explicit-constructor): whatever reads as text or a number
  Part(std::string_view text) : kind_(Kind::text), text_(text) {}
  Part(const char* text) : Part(std::string_view(text)) {}
  Part(const std::string& text) : Part(std::string_view(text)) {}
  Part(const char& letter) : Part(std::string_view(&letter, 1)) {}
  Part(std::signed_integral auto number) : kind_(Kind::integer), integer_(number) {}
  Part(std::unsigned_integral auto number) : kind_(Kind::size), size_(number) {}
  Part(std::floating_point auto number) : kind_(Kind::number), number_(number) {}
  // NOLINTEND(google-explicit-constructor)

  void append_to(std::string& all) const;

 private:
  enum class Kind : unsigned char { text, integer, size, number };
  Kind kind_;
  union {
    std::string_view text_;
    long long integer_;
    unsigned long long size_;
    double number_;
  };
};

[[noreturn]] void fail(const char* op, std::initializer_list<Part> parts);
[[noreturn]] void assertion_failed(const char* file, int line, const char* sentence) noexcept;
}  // namespace internal

/// Throws `Error("op: " + parts…)`: text, integers, and other numbers by six digits.
template <class... Parts>
[[noreturn]] void fail(const char* op, const Parts&... parts) {
  internal::fail(op, {internal::Part(parts)...});
}

/// require(k.shape[3] == q.shape[3], "attention", "expected k with K = ", K, ", got ", k.shape[3]);
template <class... Parts>
void require(bool condition, const char* op, const Parts&... parts) {
  if (!condition) fail(op, parts...);
}

}  // namespace isomer

#ifdef ISOMER_NO_ASSERTIONS
#define ISOMER_ASSERT(condition, sentence) void(0)
#else
#define ISOMER_ASSERT(condition, sentence) \
  ((condition) ? void(0) : ::isomer::internal::assertion_failed(__FILE__, __LINE__, sentence))
#endif

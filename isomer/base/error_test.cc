#include "isomer/base/error.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>

#include "tests/error_of.h"

namespace isomer {
namespace {

using tests::error_of;

TEST(Error, NamesTheOperationAndJoinsItsParts) {
  EXPECT_EQ(error_of([] { fail("attention", "expected K = ", 64, ", got ", 32.5); }), "attention: expected K = 64, got 32.5");
}

TEST(Error, WritesEveryKindOfPart) {
  const std::string text = "text";
  EXPECT_EQ(error_of([&] { fail("op", text, std::string_view(" view "), 'c', true, -3, 4u, std::size_t{5}, 1e-12f, 2.5); }),
            "op: text view c1-3451e-122.5");
  EXPECT_EQ(error_of([] { fail("op", 1234567.0, " ", 1.0 / 3, " ", -std::numeric_limits<double>::infinity()); }),
            "op: 1.23457e+06 0.333333 -inf");
}

TEST(Error, RequireThrowsOnlyWhenFalse) {
  EXPECT_EQ(error_of([] { require(true, "op", "expected nothing"); }), "no error");
  EXPECT_EQ(error_of([] { require(false, "op", "expected more"); }), "op: expected more");
}

#ifndef ISOMER_NO_ASSERTIONS
TEST(AssertDeathTest, PrintsItsSentenceAndStops) {
  EXPECT_DEATH(ISOMER_ASSERT(1 == 2, "one is not two"), "this should never happen: one is not two");
}
#else
TEST(Assert, IsCompiledOut) {
  int calls = 0;
  ISOMER_ASSERT(++calls > 0, "the condition is not evaluated");
  EXPECT_EQ(calls, 0);
}
#endif

}  // namespace
}  // namespace isomer

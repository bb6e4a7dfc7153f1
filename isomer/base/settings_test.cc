#include "isomer/base/settings.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "isomer/base/error.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

TEST(Settings, AreRead) {
  const Settings settings{{"a", "true"}, {"b", "-2.5e-1"}, {"c", "7"}, {"d", "max"}};
  constexpr std::array<std::string_view, 3> choices{"none", "sum", "max"};
  EXPECT_TRUE(read_bool(settings, "a", false));
  EXPECT_EQ(read_number(settings, "b", 1), -0.25);
  EXPECT_EQ(read_size(settings, "c", 1), 7);
  EXPECT_EQ(read_choice(settings, "d", choices), 2);
  EXPECT_TRUE(read_bool(settings, "x", true));
  EXPECT_EQ(read_number(settings, "x", 3), 3);
  EXPECT_EQ(read_size(settings, "x", 4), 4);
  EXPECT_EQ(read_choice(settings, "x", choices), 0);
}

TEST(Settings, ANumberIsTheWholeTextOrLeavesTheValue) {
  double real = 1;
  Index whole = 2;
  std::uint64_t count = 3;
  for (const std::string text : {"", "x", "1x", " 1", "1 "}) {
    EXPECT_FALSE(parse_number(text, real) || parse_number(text, whole) || parse_number(text, count)) << text;
  }
  EXPECT_FALSE(parse_number("9223372036854775808", whole));
  EXPECT_FALSE(parse_number("-1", count));
  EXPECT_EQ(real, 1);
  EXPECT_EQ(whole, 2);
  EXPECT_EQ(count, 3u);
  EXPECT_TRUE(parse_number("-2.5e-1", real) && parse_number("-7", whole) && parse_number("9223372036854775808", count));
  EXPECT_EQ(real, -0.25);
  EXPECT_EQ(whole, -7);
  EXPECT_EQ(count, std::uint64_t{1} << 63);
}

TEST(Settings, AWholeNumberMayHaveAnExponent) {
  Index value = 0;
  EXPECT_TRUE(parse_number("1e3", value));
  EXPECT_EQ(value, 1000);
  EXPECT_TRUE(parse_number("1.5E+2", value));
  EXPECT_EQ(value, 150);
  EXPECT_EQ(read_size({{"x", "2e2"}}, "x", 0), 200);
  for (const char* text : {"15e-1", "1e19", "1e999", "1.0", "e3", "1e3x", "nane"})
    EXPECT_FALSE(parse_number(text, value)) << text;
  EXPECT_EQ(value, 150);
}

TEST(Settings, SayWhatWasExpected) {
  const auto error = [](const std::string& text, auto read) {
    const Settings settings{{"x", text}};
    return tests::error_of([&] { (void)read(settings); });
  };
  const auto flag = [](const Settings& s) { return read_bool(s, "x", false); };
  const auto number = [](const Settings& s) { return read_number(s, "x", 0); };
  const auto limit = [](const Settings& s) { return read_limit(s, "x"); };
  const auto size = [](const Settings& s) { return read_size(s, "x", 0); };
  const auto choice = [](const Settings& s) {
    constexpr std::array<std::string_view, 3> choices{"none", "sum", "max"};
    return read_choice(s, "x", choices);
  };
  EXPECT_EQ(error("yes", flag), "x: expected true or false, got yes");
  for (const std::string text : {"", "1x", "inf", "nan", "1e999", " 1"})
    EXPECT_EQ(error(text, number), "x: expected a finite number, got " + text);
  for (const std::string text : {"", "much", "-inf", "nan", "1e999"})
    EXPECT_EQ(error(text, limit), "x: expected a number or inf, got " + text);
  EXPECT_EQ(read_limit({}, "x"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(read_limit({{"x", "inf"}}, "x"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(read_limit({{"x", "-2.5"}}, "x"), -2.5);
  for (const std::string text : {"-1", "1.5", "", "99999999999999999999"})
    EXPECT_EQ(error(text, size), "x: expected a whole number >= 0, got " + text);
  EXPECT_EQ(error("summ", choice), "x: expected none, sum or max, got summ");
}

TEST(Settings, ListsAreSplitAtTheirSeparators) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(split("gla,softmax*2", ','), (Parts{"gla", "softmax*2"}));
  EXPECT_EQ(split(",a,,b,", ','), (Parts{"", "a", "", "b"}));
  EXPECT_EQ(split("", ','), Parts{});
}

TEST(Settings, UnknownOnesNameTheNearest) {
  constexpr std::array<OptionSpec, 2> options{{{"pairs", "4", ""}, {"length", "64", ""}}};
  EXPECT_NO_THROW(require_known("mqar", {{"pairs", "8"}}, options));
  EXPECT_EQ(tests::error_of([&] {
              require_known("mqar", {{"pears", "8"}}, options);
            }),
            "mqar: unknown option pears, did you mean pairs?");
}

}  // namespace
}  // namespace isomer

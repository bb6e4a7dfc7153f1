#include "isomer/base/format.h"

#include <gtest/gtest.h>

namespace isomer {
namespace {

TEST(Format, NumbersAsPeopleReadThem) {
  EXPECT_EQ(text_of(0.123456), "0.1235");
  EXPECT_EQ(percent(0.256), "26%");
  EXPECT_EQ(clock_of(61.9), "1:01");
  EXPECT_EQ(clock_of(3600 + 125), "1:02:05");
  EXPECT_EQ(bytes_text(1.5 * (1 << 30)), "1.5 GiB");
  EXPECT_EQ(bytes_text(300.0 * (1 << 20)), "300 MiB");
  EXPECT_EQ(bytes_text(1.25 * (1 << 20)), "1.2 MiB");
}

}  // namespace
}  // namespace isomer

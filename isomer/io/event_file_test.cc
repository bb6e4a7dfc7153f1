#include "isomer/io/event_file.h"

#include <gtest/gtest.h>

#include "isomer/base/error.h"
#include "isomer/io/text.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

TEST(EventFile, HasTheChecksumOfTheStandard) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  // RFC 3720, B.4: 32 bytes of zeros, and of ones.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

/// Bytes taken apart by hand: two records that every file begins with, then one event. tests/tensorboard_test.py reads whole
/// runs.
TEST(EventFile, WritesTheBytesOfTheFormat) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path / "events";
  {
    EventFile file(path, 0.0);
    file.add({.step = 300, .wall_time = 1.0, .scalars = {{"a", 2.0}}});
  }
  const std::string got = read_text(path);
  const std::string message(
      "\x09\0\0\0\0\0\0\xf0\x3f"  // wall_time = 1
      "\x10\xac\x02"              // step = 300
      "\x2a\x0a\x0a\x08"          // summary { value {
      "\x0a\x01"
      "a"  // tag = "a"
      "\x15\0\0\0\x40",
      24);  // simple_value = 2
  ASSERT_EQ(got.size(), (16u + 26) + (16 + 15) + (16 + message.size()));
  EXPECT_EQ(got.substr(got.size() - message.size() - 4, message.size()), message);
  EXPECT_NE(got.find("brain.Event:2"), std::string::npos);
}

TEST(EventFile, SaysWhatItCannotWrite) {
  EXPECT_THROW(EventFile("/nowhere/events", 0), Error);
  EXPECT_THROW(EventFile("/dev/full", 0), Error);
}

}  // namespace
}  // namespace isomer

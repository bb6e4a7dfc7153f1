#include "isomer/io/text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/error_of.h"

namespace isomer {
namespace {
namespace fs = std::filesystem;

TEST(Text, IsReadAsItWasWritten) {
  const std::string path = (fs::temp_directory_path() / ("text_test_" + std::to_string(::getpid()))).string();
  for (const std::string& text : {std::string(), std::string("a\r\n\0b", 5), std::string(10000, 'x')}) {
    write_text(path, text);
    EXPECT_EQ(read_text(path), text);
  }
  fs::remove(path);
}

TEST(Text, SaysWhyItCannotBeRead) {
  const auto reason = [](const std::string& path) { return tests::error_of([&] { (void)read_text(path); }); };
  EXPECT_EQ(reason("/nowhere/x"), "cannot read /nowhere/x: No such file or directory");
  EXPECT_EQ(reason("/"), "cannot read /: Is a directory");
}

}  // namespace
}  // namespace isomer

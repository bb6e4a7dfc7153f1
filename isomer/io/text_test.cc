#include "isomer/io/text.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

TEST(Text, IsReadAsItWasWritten) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path / "a.txt";
  for (const std::string& text : {std::string(), std::string("a\r\n\0b", 5), std::string(10000, 'x')}) {
    write_text(path, text);
    EXPECT_EQ(read_text(path), text);
  }
}

TEST(Text, IsNewOnce) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path / "a.txt";
  EXPECT_TRUE(write_new_text(path, "first"));
  EXPECT_FALSE(write_new_text(path, "second"));
  EXPECT_EQ(read_text(path), "first");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path), {}), 1) << "nothing else is left";
  EXPECT_EQ(tests::error_of([] { (void)write_new_text("/nowhere/x", ""); }),
            "cannot write /nowhere/x: No such file or directory");
}

TEST(Text, HasLines) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path / "a.txt";
  write_text(path, "a\n\nb c");
  EXPECT_EQ(read_lines(path), (std::vector<std::string>{"a", "", "b c"}));
  write_text(path, "");
  EXPECT_TRUE(read_lines(path).empty());
}

TEST(Text, SaysWhyItCannotBeRead) {
  const auto reason = [](const std::string& path) { return tests::error_of([&] { (void)read_text(path); }); };
  EXPECT_EQ(reason("/nowhere/x"), "cannot read /nowhere/x: No such file or directory");
  EXPECT_EQ(reason("/"), "cannot read /: Is a directory");
  const tests::TemporaryFolder folder;
  const std::string path = folder.path / "a.txt";
  write_text(path, std::string(10000, 'x'));
  EXPECT_EQ(read_text(path, 10000).size(), 10000U);
  EXPECT_EQ(tests::error_of([&] { (void)read_text(path, 9999); }),
            "cannot read " + path + ": expected at most 9999 bytes, got more");
}

}  // namespace
}  // namespace isomer

#include "isomer/io/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "isomer/base/error.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

namespace fs = std::filesystem;

struct Atomic : testing::Test {
  tests::TemporaryFolder temporary;
  fs::path folder = temporary.path;
  std::string path = folder / "out";

  [[nodiscard]] std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder), {}); }
  [[nodiscard]] std::string content() const {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::string error(const std::string& path, const std::string& text) {
    try {
      AtomicFile file(path);
      file.write(text.data(), text.size());
      file.commit();
      return "no error";
    } catch (const Error& problem) {
      return problem.what();
    }
  }
};

TEST_F(Atomic, AppearsWhole) {
  EXPECT_EQ(error(path, "one"), "no error");
  EXPECT_EQ(content(), "one");
  EXPECT_EQ(error(path, "two"), "no error");
  EXPECT_EQ(content(), "two");
  EXPECT_EQ(files(), 1);
}

TEST_F(Atomic, IsNotThereBeforeCommit) {
  {
    AtomicFile file(path);
    file.write("x", 1);
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_EQ(files(), 0);
}

TEST_F(Atomic, KeepsModeAndLinks) {
  std::ofstream(folder / "real") << "old";
  ::chmod((folder / "real").c_str(), 0640);
  fs::create_symlink("real", path);
  EXPECT_EQ(error(path, "new"), "no error");
  EXPECT_TRUE(fs::is_symlink(path));
  EXPECT_EQ(content(), "new");
  EXPECT_EQ(fs::status(folder / "real").permissions(), fs::perms(0640));
  EXPECT_EQ(files(), 2);
}

TEST_F(Atomic, LeavesNothingWhenTheDiskIsFull) {
  ASSERT_EQ(error(path, "old"), "no error");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string got = error(path, std::string(5000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(got, "cannot write " + path + ": File too large");
  EXPECT_EQ(content(), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(Atomic, WritesDevicesInPlace) {
  EXPECT_EQ(error("/dev/full", "x"), "cannot write /dev/full: No space left on device");
  EXPECT_EQ(error("/dev/null", "x"), "no error");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(Atomic, SaysWhyItCannotWrite) {
  EXPECT_EQ(error("/nowhere/x", "x"), "cannot write /nowhere/x: No such file or directory");
  EXPECT_EQ(error(folder, "x"), "cannot write " + folder.string() + ": Is a directory");
  if (::geteuid() == 0) return;  // nothing is unwritable for root
  ::chmod(folder.c_str(), 0500);
  EXPECT_EQ(error(path, "x"), "cannot write " + path + ": Permission denied");
  ::chmod(folder.c_str(), 0700);
  EXPECT_EQ(files(), 0);
}

}  // namespace
}  // namespace isomer

#include "isomer/io/file_lock.h"

#include <gtest/gtest.h>

#include <fstream>

#include "isomer/base/error.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

TEST(FileLock, IsHeldByOneAtATime) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path / "lock";
  EXPECT_THROW((void)FileLock::take(path), Error);
  EXPECT_FALSE(FileLock::is_held(path));
  std::ofstream(path) << "x";
  {
    const std::optional<FileLock> lock = FileLock::take(path);
    ASSERT_TRUE(lock.has_value());
    EXPECT_TRUE(FileLock::is_held(path));
    EXPECT_FALSE(FileLock::take(path).has_value());
    EXPECT_TRUE(FileLock::is_held(path)) << "who asks in vain takes nothing away";
  }
  EXPECT_FALSE(FileLock::is_held(path));
  EXPECT_TRUE(FileLock::take(path).has_value());
}

}  // namespace
}  // namespace isomer

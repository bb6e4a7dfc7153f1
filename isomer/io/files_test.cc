#include "isomer/io/files.h"

#include <gtest/gtest.h>

#include "isomer/io/text.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

TEST(Paths, AreThereOrNot) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path, file = path + "/a";
  write_text(file, "");
  EXPECT_TRUE(is_there(file) && is_there(path) && is_folder(path));
  EXPECT_FALSE(is_folder(file));
  EXPECT_EQ(whole_path(path + "/b/../a"), file);
  const std::vector<std::string> nothing{"", path + "/b", file + "/below", path + "/" + std::string(300, 'x')};
  for (const std::string& none : nothing) EXPECT_FALSE(is_there(none) || is_folder(none)) << none;
}

}  // namespace
}  // namespace isomer

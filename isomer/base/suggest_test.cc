#include "isomer/base/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace isomer {
namespace {

TEST(Suggest, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("casual", "causal"), 1);
}

TEST(Suggest, FindsTheNearest) {
  const std::vector<std::string> names{"attention", "scalar_decay", "scan"};
  EXPECT_EQ(nearest("scalar-decay", names), "scalar_decay");
  EXPECT_EQ(did_you_mean("atention", names), ", did you mean attention?");
  EXPECT_EQ(did_you_mean("x", {}), "");
}

}  // namespace
}  // namespace isomer

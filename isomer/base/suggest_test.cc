#include "isomer/base/suggest.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "isomer/base/error.h"
#include "tests/error_of.h"

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

TEST(Suggest, OffersNoOtherWord) {
  const auto hint = [](const char* word, const std::string& name) { return did_you_mean(word, std::vector{name}); };
  EXPECT_EQ(hint("atention", "inline"), "");
  EXPECT_EQ(hint("--from", "--json"), "");
  EXPECT_EQ(hint("step", "model.mlp"), "");
  EXPECT_EQ(hint("x", "o"), "");
  EXPECT_EQ(hint("scalr", "scan"), "");
  EXPECT_EQ(hint("--foo", "--form"), "");
  EXPECT_EQ(hint("pears", "pairs"), ", did you mean pairs?");
  EXPECT_EQ(hint("--fmor", "--form"), ", did you mean --form?");
}

TEST(Suggest, FindsANameOrSaysWhichThereAre) {
  constexpr std::array<std::string_view, 3> kNames{"constant", "cosine", "linear"};
  EXPECT_EQ(position_of("schedule", "cosine", kNames), 1u);
  EXPECT_EQ(tests::error_of([&] { (void)position_of("schedule", "cosin", kNames); }),
            "schedule: expected constant, cosine or linear, got cosin, did you mean cosine?");
}

}  // namespace
}  // namespace isomer

#include "isomer/base/view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace isomer {
namespace {

TEST(Index, RoundsUp) {
  EXPECT_EQ(ceil_div(0, 4), 0);
  EXPECT_EQ(ceil_div(1, 4), 1);
  EXPECT_EQ(ceil_div(8, 4), 2);
  EXPECT_EQ(round_up(9, 4), 12);
}

TEST(View, IsAbsentUntilGivenData) {
  EXPECT_FALSE((View<float, 3>{}).present());
  float x = 0;
  EXPECT_TRUE(contiguous(&x, {1}).present());
}

TEST(View, ReadsRowMajor) {
  std::vector<int> numbers(24);
  std::iota(numbers.begin(), numbers.end(), 0);
  const View<int, 3> view = contiguous(numbers.data(), {2, 3, 4});
  EXPECT_EQ(view.size(), 24);
  EXPECT_TRUE(view.contiguous());
  EXPECT_EQ(view(1, 2, 3), 23);
  EXPECT_EQ(*view.at(1, 2), 20);
  EXPECT_EQ(view.at(), numbers.data());
  view(0, 1, 0) = -1;
  EXPECT_EQ(numbers[4], -1);
}

TEST(View, ReadsAnyStrides) {
  std::vector<int> numbers(12);
  std::iota(numbers.begin(), numbers.end(), 0);
  const View<int, 2> transposed{numbers.data(), {4, 3}, {1, 4}};
  EXPECT_EQ(transposed(3, 2), 11);
  EXPECT_FALSE(transposed.contiguous());
  const View<int, 2> repeated{numbers.data() + 5, {3, 2}, {0, 1}};
  EXPECT_EQ(repeated(2, 1), 6);
  const View<int, 1> backwards{numbers.data() + 11, {12}, {-1}};
  EXPECT_EQ(backwards(11), 0);
}

TEST(View, AxesOfOneAreContiguousWhateverTheirStride) {
  int x[3] = {};
  EXPECT_TRUE((View<int, 2>{x, {1, 3}, {77, 1}}).contiguous());
  EXPECT_FALSE((View<int, 2>{x, {2, 1}, {2, 1}}).contiguous());
}

TEST(View, BecomesConst) {
  int x = 3;
  const View<const int, 1> view = contiguous(&x, {1});
  EXPECT_EQ(view(0), 3);
}

}  // namespace
}  // namespace isomer

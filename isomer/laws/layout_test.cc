#include "isomer/laws/layout.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace isomer {
namespace {

std::vector<float> counted(std::size_t size) {
  std::vector<float> numbers(size);
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  return numbers;
}

TEST(DenseRows, AreTheSameNumbersInRowsWithoutGaps) {
  const std::vector<float> numbers = counted(200);
  Workspace scratch;
  // A dense last axis, one that is not, some axes that repeat what they have, and all of them.
  for (const std::array<Index, 3>& stride : {std::array<Index, 3>{20, 5, 1}, {1, 4, 20}, {0, 2, 9}, {30, 0, 4}, {0, 0, 0}})
    for (const std::array<Index, 3>& shape : {std::array<Index, 3>{3, 4, 5}, {1, 4, 5}, {3, 0, 5}, {3, 4, 1}, {3, 4, 0}}) {
      const Workspace::Scope scope(scratch);
      const View<const float, 3> x{numbers.data(), shape, stride}, dense = dense_rows(x, scratch);
      ASSERT_EQ(dense.shape, shape);
      EXPECT_TRUE(shape[2] <= 1 || dense.stride[2] == 1);
      for (Index i = 0; i < shape[0]; ++i)
        for (Index j = 0; j < shape[1]; ++j)
          for (Index d = 0; d < shape[2]; ++d) EXPECT_EQ(dense(i, j, d), x(i, j, d)) << i << " " << j << " " << d;
    }
}

TEST(DenseRows, ThatAreRepeatedAreCopiedOnce) {
  const float one = 1;
  Workspace scratch;
  const Workspace::Scope scope(scratch);
  // More than a machine has, if each were written.
  const View<const float, 3> x{&one, {Index(1) << 20, Index(1) << 20, 64}, {0, 0, 0}}, dense = dense_rows(x, scratch);
  EXPECT_EQ(dense.stride, (std::array<Index, 3>{0, 0, 1}));
  EXPECT_EQ(dense(12345, 67890, 63), 1.0f);
}

}  // namespace
}  // namespace isomer

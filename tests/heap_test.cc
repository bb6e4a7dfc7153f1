#include "tests/heap.h"

#include <gtest/gtest.h>

#include "isomer/base/buffer.h"

namespace isomer::tests {

TEST(Heap, CountsEveryWayToIt) {
  const long before = heap_allocations();
  std::vector<int> numbers(3);
  EXPECT_EQ(heap_allocations() - before, 1);
  const Buffer<float> buffer(5);
  EXPECT_EQ(heap_allocations() - before, 2);
  EXPECT_EQ(numbers.size(), 3u);
}

}  // namespace isomer::tests

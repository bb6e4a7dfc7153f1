#include "tests/heap.h"

#include <gtest/gtest.h>

#include <vector>

#include "isomer/base/buffer.h"

namespace isomer::tests {

// A compiler may leave out memory that nobody outside sees, and Clang does.
const void* volatile seen;

TEST(Heap, CountsEveryWayToIt) {
  const long before = heap_allocations();
  const std::vector<int> numbers(3);
  seen = numbers.data();
  EXPECT_EQ(heap_allocations() - before, 1);
  const Buffer<float> buffer(5);
  seen = buffer.data();
  EXPECT_EQ(heap_allocations() - before, 2);
}

}  // namespace isomer::tests

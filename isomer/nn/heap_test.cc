#include "isomer/nn/heap.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "isomer/base/allocations.h"
#include "isomer/base/buffer.h"

namespace {
std::atomic<long> calls{0};
}  // namespace

// Not inlined, or GCC takes free() for the wrong counterpart of new.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++calls;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace isomer::testing {

long heap_allocations() { return calls + internal::allocations(); }

TEST(Heap, CountsEveryWayToIt) {
  const long before = heap_allocations();
  std::vector<int> numbers(3);
  EXPECT_EQ(heap_allocations() - before, 1);
  const Buffer<float> buffer(5);
  EXPECT_EQ(heap_allocations() - before, 2);
  EXPECT_EQ(numbers.size(), 3u);
}

}  // namespace isomer::testing

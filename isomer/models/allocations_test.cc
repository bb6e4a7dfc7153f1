// Counts what the test program asks for: by new, and by the buffers of the library. In a file of its own, where the compiler sees
// no caller.
#include "isomer/base/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "isomer/models/testing.h"

namespace {
std::atomic<long> calls{0};
}

void* operator new(std::size_t size) {
  ++calls;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

long isomer::testing::allocations() { return calls + internal::allocations(); }

// Counts what the test program allocates. In a file of its own, where the compiler sees no caller.
#include <atomic>
#include <cstdlib>
#include <new>

#include "isomer/tasks/testing.h"

namespace {
std::atomic<long> count{0};
}

void* operator new(std::size_t size) {
  ++count;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

long isomer::allocations() { return count; }

// The new and delete of every test program. In a file of its own, where the compiler sees no caller and takes malloc and free for
// no mismatched pair.
#include "tests/heap.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "isomer/base/allocations.h"

namespace {
std::atomic<long> calls{0};

void* counted(std::size_t size) noexcept {
  ++calls;
  return std::malloc(size == 0 ? 1 : size);
}
}  // namespace

void* operator new(std::size_t size) {
  if (void* memory = counted(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { std::free(memory); }

long isomer::tests::heap_allocations() { return calls + internal::allocations(); }

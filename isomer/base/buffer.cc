#include "isomer/base/buffer.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "isomer/base/allocations.h"

namespace isomer::internal {

namespace {
std::atomic<long> made{0};

bool poisoning() {
  static const bool on = [] {
    const char* value = std::getenv("ISOMER_POISON");
    return value != nullptr && std::strcmp(value, "1") == 0;
  }();
  return on;
}
}  // namespace

std::byte* allocate(std::size_t bytes) {
  // Rows of [B,T,H,D] are pages apart: a large tensor in pages of 4 KiB misses the TLB at every row. And a weight that is read
  // for every token is read at the speed of memory only if prefetchers need not stop at the end of a page. Rounding
  // loses less than a huge page.
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t alignment = bytes < kHugePage / 2 ? kAlignment : kHugePage;
  // Never null, so that an empty tensor is still present.
  const std::size_t size = bytes == 0 ? kAlignment : (bytes + alignment - 1) / alignment * alignment;
  if (size < bytes) throw std::bad_alloc();
  void* p = std::aligned_alloc(alignment, size);
  if (p == nullptr) throw std::bad_alloc();
  made.fetch_add(1, std::memory_order_relaxed);
  if (alignment == kHugePage) madvise(p, size, MADV_HUGEPAGE);
  poison(p, size);
  return static_cast<std::byte*>(p);
}

long allocations() noexcept { return made.load(std::memory_order_relaxed); }

void release(std::byte* p) noexcept { std::free(p); }

void poison(void* p, std::size_t bytes) noexcept {
  if (poisoning()) std::memset(p, 0xFF, bytes);
}

}  // namespace isomer::internal

#include "isomer/base/pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <utility>

namespace isomer::internal {

namespace {
// A free block holds the address of the next one.
struct Free {
  Free* next;
};

constexpr int kSmallest = 6;  // 64 bytes

int class_of(std::size_t bytes) { return std::max(kSmallest, int(std::bit_width(bytes == 0 ? 0 : bytes - 1))); }

/// Blocks of 2^c bytes that the thread has for reuse, by c.
struct Lists {
  std::array<Free*, 64> first{};

  ~Lists() {
    for (Free*& block : first)
      while (block != nullptr) ::operator delete(std::exchange(block, block->next));
  }
};

Lists& lists() {
  static thread_local Lists all;
  return all;
}
}  // namespace

void* pool_take(std::size_t bytes) {
  const int c = class_of(bytes);
  if (c >= 63) throw std::bad_alloc();
  Free*& first = lists().first[std::size_t(c)];
  if (first == nullptr) return ::operator new (std::size_t{1} << c);
  return std::exchange(first, first->next);
}

void pool_give(void* p, std::size_t bytes) noexcept {
  Free*& first = lists().first[std::size_t(class_of(bytes))];
  first = new (p) Free{first};
}

}  // namespace isomer::internal

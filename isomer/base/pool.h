#pragma once
// Vectors for plans: lists that a call makes, uses and throws away. Their memory returns to a list that the thread keeps, so that
// calls of the same shapes ask the heap once. For numbers use Buffer and Workspace.
//
//   PoolVector<Sequence> all = sequences("op", B, T, offsets);   // laws/layout.h
#include <cstddef>
#include <vector>

namespace isomer {

namespace internal {
/// At least `bytes`, aligned as by new; give it back with the same number, on any thread.
[[nodiscard]] void* pool_take(std::size_t bytes);
void pool_give(void* p, std::size_t bytes) noexcept;
}  // namespace internal

template <class T>
struct PoolAllocator {
  static_assert(alignof(T) <= alignof(std::max_align_t));
  using value_type = T;

  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) {}  // NOLINT(google-explicit-constructor): as the standard asks

  [[nodiscard]] T* allocate(std::size_t n) { return static_cast<T*>(internal::pool_take(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) noexcept { internal::pool_give(p, n * sizeof(T)); }
  template <class U>
  [[nodiscard]] bool operator==(const PoolAllocator<U>&) const {
    return true;
  }
};

template <class T>
using PoolVector = std::vector<T, PoolAllocator<T>>;

}  // namespace isomer

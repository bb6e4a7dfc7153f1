#pragma once
// Owned, 64-byte aligned, uninitialised memory. With ISOMER_POISON=1 in the environment (the tests set it) fresh memory is
// filled with NaN bytes, so that reading what was never written shows.
#include <cstddef>
#include <type_traits>
#include <utility>

#include "isomer/base/index.h"

namespace isomer {

namespace internal {
inline constexpr std::size_t kAlignment = 64;
[[nodiscard]] std::byte* allocate(std::size_t bytes);
void release(std::byte* p) noexcept;
/// Fills with 0xFF bytes (a NaN in float and double) when poisoning is on.
void poison(void* p, std::size_t bytes) noexcept;
}  // namespace internal

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(Index size) : size_(size), data_(internal::allocate(std::size_t(size) * sizeof(T))) {}
  Buffer(Buffer&& other) noexcept : size_(std::exchange(other.size_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Buffer() { internal::release(data_); }

  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(data_); }
  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] T& operator[](Index i) const { return data()[i]; }
  [[nodiscard]] T* begin() const { return data(); }
  [[nodiscard]] T* end() const { return data() + size_; }

 private:
  Index size_ = 0;
  // Owned. A std::unique_ptr would bring <memory>, most of what this header would cost those who include it.
  std::byte* data_ = nullptr;
};

/// The same memory for a std::vector, which may be copied.
template <class T>
struct BufferAllocator {
  using value_type = T;
  BufferAllocator() = default;
  template <class U>
  BufferAllocator(const BufferAllocator<U>&) {}  // NOLINT(google-explicit-constructor): as the standard asks

  [[nodiscard]] T* allocate(std::size_t n) { return reinterpret_cast<T*>(internal::allocate(n * sizeof(T))); }
  void deallocate(T* p, std::size_t) noexcept { internal::release(reinterpret_cast<std::byte*>(p)); }
  template <class U>
  [[nodiscard]] bool operator==(const BufferAllocator<U>&) const {
    return true;
  }
};

}  // namespace isomer

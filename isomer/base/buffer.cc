#include "isomer/base/buffer.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace isomer::internal {

namespace {
bool poisoning() {
  static const bool on = [] {
    const char* value = std::getenv("ISOMER_POISON");
    return value != nullptr && std::strcmp(value, "1") == 0;
  }();
  return on;
}
}  // namespace

std::byte* allocate(std::size_t bytes) {
  // Never null, so that an empty tensor is still present.
  const std::size_t size = bytes == 0 ? kAlignment : bytes;
  auto* p = static_cast<std::byte*>(::operator new (size, std::align_val_t{kAlignment}));
  poison(p, size);
  return p;
}

void release(std::byte* p) noexcept { ::operator delete (p, std::align_val_t{kAlignment}); }

void poison(void* p, std::size_t bytes) noexcept {
  if (poisoning()) std::memset(p, 0xFF, bytes);
}

}  // namespace isomer::internal

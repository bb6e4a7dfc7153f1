#pragma once
// FNV-1a: 64 bits of a text, the same everywhere and for ever. For keys, fingerprints and streams of random numbers by name; not
// against anybody who looks for collisions.
#include <cstdint>
#include <string_view>

namespace isomer {

inline constexpr std::uint64_t kHashStart = 0xcbf29ce484222325;

/// Another start gives other bits.
[[nodiscard]] constexpr std::uint64_t hash_of(std::string_view text, std::uint64_t start = kHashStart) {
  std::uint64_t hash = start;
  for (const char c : text) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3;
  return hash;
}
// The published values of FNV-1a.
static_assert(hash_of("") == kHashStart && hash_of("a") == 0xaf63dc4c8601ec8c);

}  // namespace isomer

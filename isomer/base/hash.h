#pragma once
// FNV-1a: 64 bits of a text, the same everywhere and for ever. For keys, fingerprints and streams of random numbers by name; not
// against anybody who looks for collisions.
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace isomer {

inline constexpr std::uint64_t kHashStart = 0xcbf29ce484222325;

/// Another start gives other bits.
[[nodiscard]] constexpr std::uint64_t hash_of(std::string_view text, std::uint64_t start = kHashStart) {
  std::uint64_t hash = start;
  for (const char c : text) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3;
  return hash;
}
/// Of many bytes: eight at a time, and what is left one by one.
[[nodiscard]] inline std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t start = kHashStart) {
  std::uint64_t hash = start;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    // The product moves bits up only; the shift lets those at the top count too.
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 32;
  }
  return hash_of(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), hash);
}
/// Sixteen digits.
[[nodiscard]] inline std::string hex_of(std::uint64_t hash) {
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[(hash >> shift) & 15];
  return digits;
}
// The published values of FNV-1a.
static_assert(hash_of("") == kHashStart && hash_of("a") == 0xaf63dc4c8601ec8c);

}  // namespace isomer

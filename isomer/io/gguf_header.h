#pragma once
// What a GGUF file says about itself before its numbers: metadata and tensors, checked against all rules of the format and
// against the size of the file. Used by gguf.cc only; readers include gguf.h.
//
// Values of metadata stay where they are in the file and are decoded when they are asked for: a vocabulary costs nothing
// until then, and no count in a file makes us take memory.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/index.h"
#include "isomer/io/gguf_dequantise.h"

namespace isomer {

using GgufBytes = std::span<const std::byte>;

/// The kinds of values in metadata, by their numbers in the file.
enum class GgufKind : std::uint8_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

struct GgufEntry {
  GgufKind kind = GgufKind::u8;  // of the value, or of the elements of an array
  bool array = false;            // in `kind` the elements, which may be arrays again
  std::uint64_t count = 1;       // of an array
  GgufBytes bytes;               // of the value, or of the elements
};

struct GgufTensor {
  GgufType type{};
  std::vector<Index> shape;  // row-major: the last axis is the one whose numbers are neighbours, the file's first
  GgufBytes bytes;           // empty for a type that we do not know
};

struct GgufHeader {
  std::uint32_t version = 0;
  std::map<std::string, GgufEntry, std::less<>> metadata;
  std::map<std::string, GgufTensor, std::less<>> tensors;
};

/// Throws Error "gguf: …" without a file name, like all below. What it returns looks into `file`.
[[nodiscard]] GgufHeader parse_gguf(GgufBytes file);

/// "u32", "an array of strings", for error texts.
[[nodiscard]] std::string description(const GgufEntry& entry);

/// The values of an entry, one or many; `key` is for error texts. Any kind of whole number is an integer below 2^63, any number
/// is a number; flags are 0 and 1.
[[nodiscard]] std::vector<std::string> decode_texts(const GgufEntry& entry, std::string_view key);
[[nodiscard]] std::vector<std::int64_t> decode_flags(const GgufEntry& entry, std::string_view key);
[[nodiscard]] std::vector<std::int64_t> decode_integers(const GgufEntry& entry, std::string_view key);
[[nodiscard]] std::vector<double> decode_numbers(const GgufEntry& entry, std::string_view key);

}  // namespace isomer

#pragma once
// The types of numbers in GGUF files, and quantised blocks as numbers.
//
// A block of 32 or 256 numbers has scales of its own; number = scale × integer (+ minimum). Results are those of float arithmetic
// in this order of operations, bit for bit the same on every machine.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "isomer/base/type.h"

namespace isomer {

/// By their numbers in the file; there are others.
enum class GgufType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  i64 = 27,
  f64 = 28,
  bf16 = 30,
};

/// How numbers of a type are stored: `bytes` for every `numbers` of a row.
struct GgufBlock {
  Index numbers = 1, bytes = 0;
};

/// "Q4_K"; "type 99" for one that we do not know.
[[nodiscard]] std::string name_of(GgufType type);
/// Of every type whose layout we know, if only by its size.
[[nodiscard]] std::optional<GgufBlock> block_of(GgufType type);
/// The type of ours with the same bytes.
[[nodiscard]] std::optional<Type> plain_type(GgufType type);
/// Can `dequantise` read it?
[[nodiscard]] bool quantised(GgufType type);

/// `blocks` blocks of a quantised type as floats, or rounded to bfloat16. Blocks are independent: threads may share a tensor by
/// blocks. Bytes need no alignment.
void dequantise(GgufType type, const std::byte* from, Index blocks, float* to);
void dequantise(GgufType type, const std::byte* from, Index blocks, Bf16* to);

}  // namespace isomer

#pragma once
// The JSON header of a safetensors file, checked against all rules of the format. Used by safetensors.cc only.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/tensor.h"
#include "isomer/io/safetensors.h"

namespace isomer {

struct SafetensorsEntry {
  std::string name;
  Type type = Type::f32;
  std::vector<Index> shape;
  std::uint64_t begin = 0, end = 0;  // of its bytes, behind the header
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes, which follow each other and fill the data
  Metadata metadata;
};

/// Throws Error without a file name.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::string_view header, std::uint64_t data_bytes);

/// The header text for tensors whose bytes follow each other in this order, padded to a multiple of 8.
[[nodiscard]] std::string safetensors_header(const std::vector<const Tensors::value_type*>& order, const Metadata& metadata);

}  // namespace isomer

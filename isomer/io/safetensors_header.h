#pragma once
// The JSON header of a safetensors file, checked against all rules of the format, and the index of a sharded set of them. Used by
// safetensors.cc and safetensors_map.cc only.
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/tensor.h"
#include "isomer/io/safetensors.h"

namespace isomer {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;         // as in the file
  std::optional<Type> type;  // none: a type of the format that we do not have
  std::vector<Index> shape;
  std::uint64_t begin = 0, end = 0;  // of its bytes, behind the header
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes, which follow each other and fill the data
  Metadata metadata;
};

/// The length of the header, of a file with so many bytes in all. Throws Error without a file name, like all below.
[[nodiscard]] std::uint64_t safetensors_header_length(const std::array<std::uint8_t, 8>& prefix, std::uint64_t file_bytes);
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::string_view header, std::uint64_t data_bytes);

/// The type of a tensor whose numbers are asked for; throws Error when we do not have it.
[[nodiscard]] Type expect_type(const SafetensorsEntry& entry);

/// The file of each tensor, from an index as Hugging Face writes it. A file is named without a folder.
[[nodiscard]] std::map<std::string, std::string> parse_safetensors_index(std::string_view text);

/// The header text for tensors whose bytes follow each other in this order, padded to a multiple of 8.
[[nodiscard]] std::string safetensors_header(const std::vector<const Tensors::value_type*>& order, const Metadata& metadata);

}  // namespace isomer

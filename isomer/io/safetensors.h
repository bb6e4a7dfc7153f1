#pragma once
// Named tensors in a safetensors file: 8 bytes of header length, a JSON header, the numbers one after the other.
// Types F32, F64, BF16, F16 and I64; little-endian. To convert, cast a tensor before it is written or after it was read. A file
// that breaks any rule of the format is an Error, never a crash, and no memory is taken that the file's own size does not account
// for. Files of several gigabytes and sets of files: safetensors_map.h.
//
//   Tensors in = read_safetensors("in.safetensors");
//   write_safetensors("out.safetensors", out);
#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "isomer/base/tensor.h"

namespace isomer {

/// Short texts beside the tensors, e.g. who wrote the file.
using Metadata = std::map<std::string, std::string, std::less<>>;
struct SafetensorsFile {
  Tensors tensors;
  Metadata metadata;
};

/// Throws Error "PATH: what is wrong with it".
[[nodiscard]] Tensors read_safetensors(const std::string& path);
[[nodiscard]] SafetensorsFile read_safetensors_file(const std::string& path);
/// The same from memory.
[[nodiscard]] Tensors parse_safetensors(std::span<const std::byte> file);

/// Throws Error "cannot write PATH: reason"; the file is there whole or not at all.
void write_safetensors(const std::string& path, const Tensors& tensors, const Metadata& metadata = {});

}  // namespace isomer

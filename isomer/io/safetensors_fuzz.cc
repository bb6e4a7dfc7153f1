// libFuzzer: whatever the bytes, the reader returns tensors or throws Error, no tensor is larger than the file, all that a header
// names lies inside of it, and no index names a file outside its folder.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "isomer/base/error.h"
#include "isomer/io/safetensors.h"
#include "isomer/io/safetensors_header.h"

namespace {
void parse(const std::string& file) {
  try {
    std::size_t bytes = 0;
    for (const auto& [name, tensor] : isomer::parse_safetensors(std::as_bytes(std::span(file))))
      bytes += std::size_t(tensor.size() * isomer::bytes_of(tensor.type()));
    if (bytes > file.size()) std::abort();
  } catch (const isomer::Error&) {
  }
}

/// With the types that are skipped too, as a mapped file is opened.
void parse_header(const std::string& header, std::uint64_t data_bytes) {
  try {
    for (const auto& entry : isomer::parse_safetensors_header(header, data_bytes).entries)
      if (entry.begin > entry.end || entry.end > data_bytes) std::abort();
  } catch (const isomer::Error&) {
  }
}

void parse_index(const std::string& text) {
  try {
    for (const auto& [name, file] : isomer::parse_safetensors_index(text))
      if (file.find('/') != std::string::npos || file.find('\0') != std::string::npos || file.starts_with("..")) std::abort();
  } catch (const isomer::Error&) {
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  parse(bytes);
  parse_index(bytes);
  parse_header(bytes, 16);
  // The same bytes as a header of the right length, with sixteen of them as numbers: the rules behind the parser are reached
  // sooner.
  const std::size_t header = size < 16 ? size : size - 16;
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = char(std::uint64_t(header) >> (8 * i));
  parse(file + bytes);
  return 0;
}

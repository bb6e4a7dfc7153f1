// libFuzzer: whatever the bytes, the reader returns tensors or throws Error, and no tensor is larger than the file.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "isomer/base/error.h"
#include "isomer/io/safetensors.h"

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
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  parse(bytes);
  // The same bytes as a header of the right length, with sixteen of them as numbers: the rules behind the parser are reached
  // sooner.
  const std::size_t header = size < 16 ? size : size - 16;
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = char(std::uint64_t(header) >> (8 * i));
  parse(file + bytes);
  return 0;
}

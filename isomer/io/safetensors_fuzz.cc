// libFuzzer: whatever the bytes, the reader returns tensors or throws Error, and no tensor is larger than the file.
#include <cstdint>
#include <cstdlib>

#include "isomer/base/error.h"
#include "isomer/io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const isomer::Tensors tensors = isomer::parse_safetensors({reinterpret_cast<const std::byte*>(data), size});
    std::size_t bytes = 0;
    for (const auto& [name, tensor] : tensors) bytes += std::size_t(tensor.size() * isomer::bytes_of(tensor.type()));
    if (bytes > size) std::abort();
  } catch (const isomer::Error&) {
  }
  return 0;
}

// libFuzzer: whatever the bytes, the reader returns an array of the file's size or throws Error.
#include <cstdint>
#include <cstdlib>

#include "isomer/base/error.h"
#include "isomer/io/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const isomer::IdxArray array = isomer::parse_idx({data, size});
    std::size_t numbers = 1;
    for (isomer::Index n : array.shape) numbers *= std::size_t(n);
    if (numbers != array.data.size() || array.data.size() > size) std::abort();
  } catch (const isomer::Error&) {
  }
  return 0;
}

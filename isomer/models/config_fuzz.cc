// libFuzzer: whatever the bytes, a config is read or refused with Error; what was read is written and read back the same.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "isomer/base/error.h"
#include "isomer/models/config.h"

namespace {
void read(const std::string& json) {
  try {
    const std::string written = to_json(isomer::model_config(json, "config.json"));
    if (to_json(isomer::model_config(written, "config.json")) != written) std::abort();
  } catch (const isomer::Error&) {
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  // The same bytes in place of some of a good config: the rules behind the parser are reached sooner.
  static const std::string good = isomer::to_json(
      {.width = 8, .layers = {{"gla", {{"heads", "2"}}}, {"sliding-window", {{"window", "4"}}}}, .vocabulary = 16});
  if (size < 2) return 0;
  const std::size_t at = (std::size_t(data[0]) << 8 | data[1]) % good.size();
  read(good.substr(0, at) + bytes.substr(2) + good.substr(std::min(good.size(), at + size - 2)));
  return 0;
}

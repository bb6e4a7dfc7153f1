// libFuzzer: whatever a config of another library says, it is a model with a table of weights, or refused with Error.
#include <cstdint>
#include <string>

#include "isomer/base/error.h"
#include "isomer/models/foreign/architecture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const isomer::ForeignConfig config(std::string(reinterpret_cast<const char*>(data), size), "config.json");
    const isomer::Architecture& architecture = isomer::find_architecture(config);
    // As of a small file.
    (void)isomer::model_of(architecture, config, 1 << 12);
    (void)isomer::weights_of(architecture, config);
  } catch (const isomer::Error&) {
  }
  return 0;
}

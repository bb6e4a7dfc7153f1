// libFuzzer: whatever the bytes, a tokenizer is read or refused with Error; what was read is written and read back the same.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "isomer/base/error.h"
#include "isomer/models/tokenizer.h"

namespace {
// More than the bytes, so that byte pairs are read too.
constexpr isomer::Index kVocabulary = 1024;

void read(const std::string& json) {
  try {
    const std::string written = isomer::tokenizer_from(json, "tokenizer.json", kVocabulary)->to_json();
    if (isomer::tokenizer_from(written, "tokenizer.json", kVocabulary)->to_json() != written) std::abort();
  } catch (const isomer::Error&) {
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  // As the words of a good one: the rules behind the parser are reached sooner.
  read(R"({"version": 1, "name": "words", "words": [)" + bytes + "]}");
  return 0;
}

#pragma once
// For tests: what tools/tokenizer-goldens wrote.
#include <string>

#include "isomer/io/json.h"
#include "isomer/io/text.h"

namespace isomer::tests {

[[nodiscard]] inline Json read_golden(const std::string& name) {
  std::string path = ISOMER_SOURCE_DIR;
  path.append("/isomer/models/tokenizers/goldens/").append(name).append(".json");
  return Json::parse(read_text(path), path);
}

}  // namespace isomer::tests

// The inputs that fuzzers start from are good ones: what is refused at once leads nowhere.
#include <gtest/gtest.h>

#include <filesystem>

#include "isomer/io/bytes.h"
#include "isomer/io/idx.h"
#include "isomer/io/safetensors.h"
#include "isomer/io/safetensors_header.h"
#include "isomer/io/text.h"
#include "isomer/models/config.h"
#include "isomer/models/tokenizer.h"

namespace isomer {
namespace {

std::vector<std::string> seeds(const std::string& fuzzer) {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(ISOMER_SOURCE_DIR) / "tests/fuzz-seeds" / fuzzer))
    files.push_back(entry.path());
  EXPECT_GE(files.size(), 2U) << fuzzer;
  return files;
}

TEST(FuzzSeeds, AreRead) {
  for (const std::string& file : seeds("fuzz_config")) EXPECT_GT(model_config(read_text(file), file).width, 0) << file;
  for (const std::string& file : seeds("fuzz_idx")) EXPECT_FALSE(parse_idx(read_bytes(file, 1 << 20)).data.empty()) << file;
  for (const std::string& file : seeds("fuzz_tokenizer")) EXPECT_GT(tokenizer_from(read_text(file), file, 1024)->vocabulary(), 2);
  for (const std::string& file : seeds("fuzz_safetensors")) {
    if (file.ends_with("/header"))
      EXPECT_FALSE(parse_safetensors_header(read_text(file), 16).entries.empty());
    else if (file.ends_with("/index"))
      EXPECT_FALSE(parse_safetensors_index(read_text(file)).empty());
    else
      EXPECT_FALSE(read_safetensors(file).empty());
  }
}

}  // namespace
}  // namespace isomer

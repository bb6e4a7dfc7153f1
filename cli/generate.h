#pragma once
// Text or tokens streamed from a language model: what `isomer generate` and `isomer run` understand.
#include <string>
#include <vector>

#include "isomer/models/model_folder.h"
#include "isomer/train/sample.h"

namespace isomer::cli {

struct GenerateRequest {
  std::string model;
  std::vector<std::string> prompts = {}, prompt_files = {};
  std::string prompt_lines = {}, load_state = {}, save_state = {};
  Index tokens = 200;
  SampleOptions sample{.temperature = 0.8};
  std::uint64_t seed = 1;
  std::string weights = "float32";
  bool interactive = false, chat = false, json = false, stats = false;
  int threads = 0;
};

/// Throws Error for a model of another kind.
int generate(const LoadedModel& loaded, const GenerateRequest& request);

}  // namespace isomer::cli

#pragma once
// Text or tokens streamed from a language model: what `isomer generate` and `isomer run` understand.
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
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
  std::string weights = "file";     // what matrices are kept in
  std::string compute = "float32";  // what they are multiplied with
  bool interactive = false, chat = false, json = false, stats = false;
  int threads = 0;
};

/// Those that `run` and `generate` have in common: how tokens are drawn, what matrices are kept in, what is printed.
void add_generate_options(Options& options, GenerateRequest& request);
/// Throws Error as load_model() does.
[[nodiscard]] std::unique_ptr<LoadedModel> load(const GenerateRequest& request);
/// Throws Error for a model of another kind.
int generate(const LoadedModel& loaded, const GenerateRequest& request);

}  // namespace isomer::cli

#include "isomer/models/model_files.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>

#include "isomer/base/error.h"
#include "isomer/base/settings.h"
#include "isomer/io/files.h"
#include "isomer/io/text.h"

namespace isomer {

namespace {
namespace fs = std::filesystem;
constexpr const char *kConfig = "/config.json", *kWeights = "/model.safetensors", *kTokenizer = "/tokenizer.json";

/// The number behind "step-"; nothing else is a checkpoint.
std::optional<Index> step_of(const std::string& name) {
  if (!name.starts_with("step-")) return {};
  Index step = 0;
  if (!parse_number(std::string_view(name).substr(5), step) || step < 0) return {};
  return step;
}

/// Is no number infinite or none at all, with all bits of its exponent set? A word of several numbers at a time, for this reads
/// all of a file: adding the lowest bit of an exponent to it carries into the sign where the others are set, and nowhere else.
template <class Bits>
bool all_finite(const TensorView& tensor, Bits exponent) {
  constexpr std::uint64_t kEach = ~std::uint64_t{0} / Bits(~Bits{0});  // one in every number of a word
  const std::uint64_t bits = kEach * exponent, lowest = kEach * Bits(exponent & (~exponent + 1)), sign = bits + lowest;
  std::uint64_t word = 0, carried = 0;
  const Index bytes = tensor.size() * Index(sizeof(Bits)), whole = bytes - bytes % Index(sizeof word);
  for (Index at = 0; at < whole; at += Index(sizeof word)) {
    std::memcpy(&word, tensor.data + at, sizeof word);
    carried |= (word & bits) + lowest;
  }
  word = 0;
  if (bytes > whole) std::memcpy(&word, tensor.data + whole, std::size_t(bytes - whole));
  return ((carried | ((word & bits) + lowest)) & sign) == 0;
}

bool finite(const TensorView& tensor) {
  switch (tensor.type) {
    case Type::f32: return all_finite(tensor, std::uint32_t{0x7f800000});
    case Type::f64: return all_finite(tensor, std::uint64_t{0x7ff0000000000000});
    case Type::bf16: return all_finite(tensor, std::uint16_t{0x7f80});
    case Type::f16: return all_finite(tensor, std::uint16_t{0x7c00});
    default: return true;
  }
}

std::string read_tokenizer_of(const std::string& folder) {
  return is_there(folder + kTokenizer) ? read_text(folder + kTokenizer, kLargestTokenizer) : "";
}
}  // namespace

std::string checkpoint_folder(const std::string& run, Index step) { return run + "/checkpoints/step-" + std::to_string(step); }

std::vector<Index> checkpoint_steps(const std::string& run) {
  std::vector<Index> steps;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run + "/checkpoints", none))
    if (const auto step = step_of(entry.path().filename().string()); step && entry.is_directory(none)) steps.push_back(*step);
  std::ranges::sort(steps);
  return steps;
}

RunPath run_path(const std::string& path) {
  const std::size_t at = path.rfind('@');
  if (at == std::string::npos || is_there(path)) return {.run = path};
  const std::string run = path.substr(0, at), name = path.substr(at + 1);
  const std::vector<Index> steps = checkpoint_steps(run);
  if (steps.empty()) return {.run = path};  // the folder of no run: who opens it says so
  std::error_code none;
  const fs::path target = fs::read_symlink(run + "/checkpoints/" + name, none);
  const std::optional<Index> step = step_of(target.empty() ? name : target.string());
  if (step && std::ranges::binary_search(steps, *step)) return {.run = run, .step = step};
  std::string all;
  for (const Index there : steps) all += (all.empty() ? "step-" : ", step-") + std::to_string(there);
  throw Error(path + ": expected one of the checkpoints " + all + ", got " + name);
}

void require_finite(const std::string& path, const TensorViews& tensors, const char* what) {
  for (const auto& [name, tensor] : tensors)
    if (!finite(tensor)) throw NotFinite(path + ": expected finite " + what + ", got others in " + name);
}

std::string find_model(const std::string& path) {
  if (is_there(path + kConfig)) return path;
  if (const RunPath at = run_path(path); at.step) return checkpoint_folder(at.run, *at.step);
  const std::vector<Index> steps = checkpoint_steps(path);
  if (!steps.empty()) return checkpoint_folder(path, steps.back());
  if (is_there(path + "/recipe.toml")) throw Error(path + ": expected a run with a checkpoint, got none");
  throw Error(path + ": expected the folder of a run or of a model (with config.json), got neither");
}

ModelFiles read_model_files(const std::string& folder) {
  ModelFiles files{.config = {}, .weights = read_safetensors(folder + kWeights)};
  files.config = read_text(folder + kConfig, kLargestConfig);
  files.tokenizer = read_tokenizer_of(folder);
  require_finite(folder + kWeights, views_of(files.weights));
  return files;
}

MappedModelFiles map_model_files(const std::string& folder) {
  const bool sharded = is_there(folder + kWeights + ".index.json");
  const MappedSafetensors weights(sharded ? folder : folder + kWeights);
  require_finite(folder + kWeights, weights.views());
  return {read_text(folder + kConfig, kLargestConfig), weights, read_tokenizer_of(folder)};
}

void write_model_files(const std::string& folder, const ModelFiles& files) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) throw Error("cannot write " + folder + ": " + problem.message());
  write_safetensors(folder + kWeights, files.weights);
  write_text(folder + kConfig, files.config);
  if (files.tokenizer.empty())
    fs::remove(folder + kTokenizer, problem);
  else
    write_text(folder + kTokenizer, files.tokenizer);
}

}  // namespace isomer

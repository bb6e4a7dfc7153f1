#pragma once
// The files of a model's folder, as they are; model_folder.h makes a model of them.
//
//   FOLDER/config.json          config.h, with the names of labels if there are any
//   FOLDER/model.safetensors    every weight by its name; or model.safetensors.index.json and the files that it names
//   FOLDER/tokenizer.json       tokenizer.h; not there: tokens are numbers
//
//   const ModelFiles files = read_model_files(find_model("runs/text"));
#include <optional>
#include <string>
#include <vector>

#include "isomer/io/safetensors_map.h"
#include "isomer/models/not_finite.h"

namespace isomer {

/// Texts of more bytes are none of a model: they would take twenty times that to be understood.
inline constexpr std::size_t kLargestConfig = std::size_t{16} << 20, kLargestTokenizer = std::size_t{256} << 20;

/// The files, read.
struct ModelFiles {
  std::string config;  // JSON
  Tensors weights;
  std::string tokenizer = {};  // JSON; empty: no file
};

/// The same with weights that stay in their file, or in the files of a sharded set.
struct MappedModelFiles {
  std::string config;
  MappedSafetensors weights;
  std::string tokenizer = {};
};

/// The steps of the checkpoints in the folder of a run, ascending; empty if it is none.
[[nodiscard]] std::vector<Index> checkpoint_steps(const std::string& run);
[[nodiscard]] std::string checkpoint_folder(const std::string& run, Index step);
/// A run, or with "@step-120" or "@best" behind it one of its checkpoints. Throws Error when the run does not have it, naming
/// those that it has.
struct RunPath {
  std::string run;
  std::optional<Index> step = {};  // not there: the last
};
[[nodiscard]] RunPath run_path(const std::string& path);
/// The folder of the model that `path` stands for: itself, a checkpoint of a run, or its last one. Throws Error when it is
/// nothing of these.
[[nodiscard]] std::string find_model(const std::string& path);

/// Throws NotFinite "PATH: …" naming the first tensor that is not finite, and what they are.
void require_finite(const std::string& path, const TensorViews& tensors, const char* what = "weights");
/// Throws Error "PATH: …" for a damaged file, and NotFinite naming the first weight that is not finite.
[[nodiscard]] ModelFiles read_model_files(const std::string& folder);
[[nodiscard]] MappedModelFiles map_model_files(const std::string& folder);
/// Throws Error "cannot write …".
void write_model_files(const std::string& folder, const ModelFiles& files);

}  // namespace isomer

#pragma once
// A model as a folder that can be taken anywhere: what it is, its weights, how its tokens are written. It knows no task and no
// recipe. A checkpoint of a run is such a folder with more in it. model_files.h has its files.
//
//   const std::unique_ptr<LoadedModel> loaded = load_model("runs/text");       // or any such folder
//   loaded->model.logits(tape, {.B = 1, .T = 3, .tokens = loaded->tokenizer->encode("The")});
//   save_model("elsewhere", *loaded);
#include <memory>
#include <string>

#include "isomer/models/model.h"
#include "isomer/models/model_files.h"
#include "isomer/models/tokenizer.h"

namespace isomer {

/// A model with its weights and what reads and writes its tokens.
struct LoadedModel {
  /// Throws Error for a config that no model can be made of, and for weights that are not its own.
  LoadedModel(const ModelConfig& config, const Tensors& weights, std::unique_ptr<const Tokenizer> reader);

  Parameters<float> parameters;
  Model<float> model;
  std::unique_ptr<const Tokenizer> tokenizer;  // null: the inputs are vectors
};

/// From a model's folder or from that of a run. Throws Error as find_model() and read_model_files() do.
[[nodiscard]] std::unique_ptr<LoadedModel> load_model(const std::string& path);
/// Makes the folder if need be. Throws Error "cannot write …".
void save_model(const std::string& folder, const LoadedModel& model);

}  // namespace isomer

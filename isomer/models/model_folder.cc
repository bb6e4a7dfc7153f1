#include "isomer/models/model_folder.h"

#include "isomer/base/error.h"

namespace isomer {

LoadedModel::LoadedModel(const ModelConfig& config, const TensorViews& weights, std::unique_ptr<const Tokenizer> reader,
                         Type storage)
    : parameters(storage), model(config, parameters), tokenizer(std::move(reader)) {
  parameters.assign(weights);
}

std::unique_ptr<LoadedModel> load_model(const std::string& path, Type storage) {
  const std::string folder = find_model(path);
  const MappedModelFiles files = map_model_files(folder);
  const ModelConfig config = model_config(files.config, folder + "/config.json");
  std::unique_ptr<const Tokenizer> tokenizer;
  if (config.vocabulary > 0) tokenizer = tokenizer_from(files.tokenizer, folder + "/tokenizer.json", config.vocabulary);
  try {
    return std::make_unique<LoadedModel>(config, files.weights.views(), std::move(tokenizer), storage);
  } catch (const Error& problem) {
    throw Error(folder + "/model.safetensors" + ": " + problem.what());
  }
}

void save_model(const std::string& folder, const LoadedModel& model) {
  write_model_files(folder, {.config = to_json(model.model.config()),
                             .weights = model.parameters.tensors(),
                             .tokenizer = model.tokenizer ? model.tokenizer->to_json() : ""});
}

}  // namespace isomer

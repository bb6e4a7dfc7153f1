#pragma once
// A model as a folder that can be taken anywhere: what it is, its weights, how its tokens are written. It knows no task and no
// recipe. A checkpoint of a run is such a folder with more in it. model_files.h has its files. Folders of Hugging Face are read
// as they are (foreign/architecture.h), and written again with their own names.
//
//   const std::unique_ptr<LoadedModel> loaded = load_model("runs/text");       // or any such folder
//   const ModelOutput<float> out = loaded->model.logits(tape, {.B = 1, .T = 3, .tokens = loaded->tokenizer->encode("The")});
//   save_model("elsewhere", *loaded);
#include <memory>
#include <optional>
#include <string>

#include "isomer/models/foreign/weight_table.h"
#include "isomer/models/model.h"
#include "isomer/models/model_files.h"
#include "isomer/models/tokenizer.h"

namespace isomer {

/// Where the weights of a model of another library are from.
struct Foreign {
  std::string config;         // the text of its config.json
  WeightTable table;          // from its names to ours
  MappedSafetensors weights;  // as they were
};

/// A model with its weights and what reads and writes its tokens.
struct LoadedModel {
  /// Matrices are kept in `storage` (nn/parameters.h). Throws Error for a config that no model can be made of, and for weights
  /// that are not its own.
  /// Weights that are in `storage` already stay where they are if there is an `owner`, who keeps them there.
  LoadedModel(const ModelConfig& config, const TensorViews& weights, std::unique_ptr<const Tokenizer> reader,
              Type storage = Type::f32, std::shared_ptr<const void> owner = {});
  LoadedModel(const ModelConfig& config, const Tensors& weights, std::unique_ptr<const Tokenizer> reader)
      : LoadedModel(config, views_of(weights), std::move(reader)) {}
  /// Of another library's weights by their names. Throws Error listing those that are missing, unknown or of another shape.
  LoadedModel(const ModelConfig& config, const WeightTable& table, const TensorViews& theirs,
              std::unique_ptr<const Tokenizer> reader, Type storage = Type::f32, std::shared_ptr<const void> owner = {});
  /// The same, which can be written again with their names.
  LoadedModel(const ModelConfig& config, Foreign from, std::unique_ptr<const Tokenizer> reader, Type storage = Type::f32);

  Parameters<float> parameters;
  Model<float> model;
  std::unique_ptr<const Tokenizer> tokenizer;  // null: the inputs are vectors
  std::optional<Foreign> foreign = {};         // of a folder that is not one of ours
  std::vector<std::int64_t> ends = {};         // tokens that end what a model of another library says
  Index most_tokens = 0;                       // of a text of a sentence encoder; 0: as many as the model can take
  std::string chat_template = {};              // how it was taught conversations (tokenizers/chat.h); empty: it was not
};

/// From a model's folder, from that of a run, or from a GGUF file (foreign/gguf_model.h). The file is mapped: weights that it has
/// in a `storage` of 16 bits, one behind the other where they are one product here, are used where they are, others are copied.
/// Without a storage matrices are kept as the file has most of its numbers, quantised ones as BF16. Throws Error as find_model()
/// and map_model_files() do.
[[nodiscard]] std::unique_ptr<LoadedModel> load_model(const std::string& path, std::optional<Type> storage = Type::f32);
/// The config.json of a folder: that of a sentence encoder (1_Pooling) is of the model without a head, whatever class it names.
[[nodiscard]] std::string folder_config(const std::string& folder, const std::string& text);
/// Of an embedding: which vector stands for a text, as the folder of a sentence encoder says; without the file it stays as it is.
void read_pooling(const std::string& folder, ModelConfig& config);
/// A line about what there is in its folder and not in the model, such as a decoder; empty: nothing.
[[nodiscard]] std::string left_out(const LoadedModel& model);
/// Makes the folder if need be: one of ours, or that of Hugging Face where the model is from one. Throws Error "cannot write …".
void save_model(const std::string& folder, const LoadedModel& model);

}  // namespace isomer

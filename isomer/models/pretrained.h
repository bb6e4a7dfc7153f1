#pragma once
// Pre-trained models as the beginning of others: what a folder's model is without its weights, with its own head or one for
// other classes, its weights by our names, and the way back into a folder of its library.
#include <optional>

#include "isomer/models/model_folder.h"

namespace isomer {

/// What a new head tells apart.
struct Classes {
  Index count = 0;
  std::vector<std::string> labels = {};  // their names; empty: they have none
};

/// Is there a model's folder or a GGUF file, and not a run?
[[nodiscard]] bool is_bare_model(const std::string& path);

/// Of a model's folder, a run or a GGUF file. With classes: a classifier of the same tokens or vectors, as the architecture's own
/// library has it where it has one; else the vector of the sequence and a linear head. Throws Error as load_model() does.
[[nodiscard]] ModelConfig describe_model(const std::string& path, const std::optional<Classes>& classes = {});

/// Every weight there is at the path, by our names: those of the model, and what its file has for a classifier beside them.
[[nodiscard]] Tensors read_weights(const std::string& path);

/// The text of the tokenizer.json that a model comes with; empty: it has none, or it is not one of texts.
[[nodiscard]] std::string read_tokenizer(const std::string& path);

/// Writes a model as a folder: with the config and the names of the library that `origin` is a folder of, if it still is such a
/// model, else as ours. Says which; `origin` may be empty. Throws Error "cannot write …".
enum class Exported : std::uint8_t { hugging_face, ours };
Exported export_model(const std::string& folder, const LoadedModel& model, const std::string& origin);

}  // namespace isomer

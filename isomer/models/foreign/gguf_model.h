#pragma once
// A model in a GGUF file, as the folder of Hugging Face that it was made of: a config.json, weights by their names there, a
// tokenizer. Llama, Qwen2 and Qwen3.
//
//   const GgufModel model = read_gguf_model("model.gguf");
#include <memory>
#include <optional>
#include <string>

#include "isomer/base/tensor.h"
#include "isomer/models/tokenizer.h"

namespace isomer {

struct GgufModel {
  std::string config;  // the text of a config.json
  Tensors weights;     // dequantised
  std::unique_ptr<const Tokenizer> tokenizer;
  std::vector<std::int64_t> ends = {};  // tokens that end what it says
  std::string chat_template;            // empty: it has none
};

/// Is the path such a file, or a folder with one and no config.json? The path of the file; else empty.
[[nodiscard]] std::string find_gguf(const std::string& path);
/// Matrices are read as `storage`, or as they are where they are not quantised, and as BF16 where they are; all else as F32.
/// Throws Error "PATH: …" for an architecture that we do not have, or a tensor or key that is not there.
[[nodiscard]] GgufModel read_gguf_model(const std::string& path, std::optional<Type> storage = Type::f32);
/// The same without the weights.
[[nodiscard]] std::string read_gguf_config(const std::string& path);
[[nodiscard]] std::unique_ptr<const Tokenizer> read_gguf_tokenizer(const std::string& path);

}  // namespace isomer

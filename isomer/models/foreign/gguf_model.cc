#include "isomer/models/foreign/gguf_model.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <optional>

#include "isomer/base/error.h"
#include "isomer/io/gguf.h"
#include "isomer/io/json.h"
#include "isomer/models/foreign/weight_table.h"
#include "isomer/models/tokenizers/given_parts.h"

namespace isomer {

namespace {
namespace fs = std::filesystem;

constexpr std::array kArchitectures{"llama", "qwen2", "qwen3"};

/// Theirs and the name in a folder of Hugging Face; those of layers begin with blk.N. and model.layers.N.
struct Name {
  std::string_view gguf, folder;
};
constexpr std::array<Name, 3> kOuter{{{"token_embd.weight", "model.embed_tokens.weight"},
                                      {"output_norm.weight", "model.norm.weight"},
                                      {"output.weight", "lm_head.weight"}}};
constexpr std::array<Name, 14> kInner{{{"attn_norm.weight", "input_layernorm.weight"},
                                       {"attn_q.weight", "self_attn.q_proj.weight"},
                                       {"attn_q.bias", "self_attn.q_proj.bias"},
                                       {"attn_k.weight", "self_attn.k_proj.weight"},
                                       {"attn_k.bias", "self_attn.k_proj.bias"},
                                       {"attn_v.weight", "self_attn.v_proj.weight"},
                                       {"attn_v.bias", "self_attn.v_proj.bias"},
                                       {"attn_q_norm.weight", "self_attn.q_norm.weight"},
                                       {"attn_k_norm.weight", "self_attn.k_norm.weight"},
                                       {"attn_output.weight", "self_attn.o_proj.weight"},
                                       {"ffn_norm.weight", "post_attention_layernorm.weight"},
                                       {"ffn_gate.weight", "mlp.gate_proj.weight"},
                                       {"ffn_up.weight", "mlp.up_proj.weight"},
                                       {"ffn_down.weight", "mlp.down_proj.weight"}}};

std::string folder_name(const std::string& name) {
  for (const Name& one : kOuter)
    if (one.gguf == name) return std::string(one.folder);
  const std::size_t dot = name.find('.', 4);
  if (name.starts_with("blk.") && dot != std::string::npos)
    for (const Name& one : kInner)
      if (one.gguf == std::string_view(name).substr(dot + 1))
        return "model.layers." + name.substr(4, dot - 4) + "." + std::string(one.folder);
  return name;
}

/// What the metadata say of a model, under its architecture's name.
class Sizes {
 public:
  Sizes(const Gguf& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + ".") {}
  [[nodiscard]] std::int64_t size(const char* key) const { return file_.integer(prefix_ + key); }
  [[nodiscard]] std::int64_t size(const char* key, std::int64_t fallback) const { return has(key) ? size(key) : fallback; }
  [[nodiscard]] double number(const char* key, double fallback) const {
    return has(key) ? file_.number(prefix_ + key) : fallback;
  }
  [[nodiscard]] bool has(const char* key) const { return file_.has(prefix_ + key); }

 private:
  const Gguf& file_;
  std::string prefix_;
};

std::string config_of(const Gguf& file, const std::string& architecture) {
  const Sizes sizes(file, architecture);
  for (const char* key : {"expert_count", "attention.sliding_window", "rope.scaling.type"})
    if (sizes.has(key)) throw Error(architecture + "." + key + ": expected none, which is all that is supported");
  const std::int64_t heads = sizes.size("attention.head_count"), width = sizes.size("embedding_length");
  if (heads <= 0) throw Error("expected heads, got " + std::to_string(heads));
  std::string name = architecture;
  name[0] = char(name[0] - 'a' + 'A');
  return Json::object({{"model_type", architecture},
                       {"architectures", Json::Array{name + "ForCausalLM"}},
                       {"hidden_size", width},
                       {"intermediate_size", sizes.size("feed_forward_length")},
                       {"num_hidden_layers", sizes.size("block_count")},
                       {"num_attention_heads", heads},
                       {"num_key_value_heads", sizes.size("attention.head_count_kv", heads)},
                       {"head_dim", sizes.size("attention.key_length", width / heads)},
                       {"vocab_size", file.shape("token_embd.weight").at(0)},
                       {"max_position_embeddings", sizes.size("context_length", 2048)},
                       {"rms_norm_eps", sizes.number("attention.layer_norm_rms_epsilon", 1e-6)},
                       {"rope_theta", sizes.number("rope.freq_base", 10000)},
                       {"tie_word_embeddings", !file.contains("output.weight")},
                       {"hidden_act", "silu"}})
      .dump(1);
}

/// Rows in another order.
Tensor in_order(const Tensor& tensor, const std::vector<Index>& rows) {
  const Index columns = tensor.size() / std::max<Index>(tensor.shape()[0], 1);
  if (Index(rows.size()) != tensor.shape()[0]) throw Error("expected rows of whole heads, got " + text_of(tensor.shape()));
  Tensor ordered(tensor.type(), tensor.shape());
  const Index row = columns * bytes_of(tensor.type());
  for (std::size_t r = 0; r < rows.size(); ++r)
    std::memcpy(ordered.bytes() + Index(r) * row, tensor.bytes() + rows[r] * row, std::size_t(row));
  return ordered;
}

/// What a matrix is kept in where nobody says.
Type stored_type(GgufType type) { return type == GgufType::f32 ? Type::f32 : type == GgufType::f16 ? Type::f16 : Type::bf16; }

Tensors weights_of(const Gguf& file, const std::string& architecture, std::optional<Type> storage) {
  const Sizes sizes(file, architecture);
  const std::int64_t heads = sizes.size("attention.head_count");
  const std::int64_t head = sizes.size("attention.key_length", sizes.size("embedding_length") / std::max<std::int64_t>(heads, 1));
  Tensors all;
  for (const std::string& name : file.names()) {
    if (name == "rope_freqs.weight") throw Error(name + ": expected angles without factors, which is all that is supported");
    Tensor tensor = file.read(name, file.shape(name).size() == 2 ? storage.value_or(stored_type(file.type(name))) : Type::f32);
    // Files of Llama have the two channels of a rotated pair beside each other.
    const bool q = name.ends_with("attn_q.weight"), k = name.ends_with("attn_k.weight");
    if (architecture == "llama" && (q || k))
      tensor = in_order(tensor, rows_of_pairs(q ? heads : sizes.size("attention.head_count_kv", heads), head));
    all.emplace(folder_name(name), std::move(tensor));
  }
  return all;
}

std::vector<std::int64_t> ends_of(const Gguf& file) {
  std::vector<std::int64_t> ends;
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"})
    if (file.has(key)) ends.push_back(file.integer(key));
  return ends;
}

std::unique_ptr<const Tokenizer> tokenizer_of(const Gguf& file) {
  const std::string model = file.text("tokenizer.ggml.model");
  const auto special = [&](const char* key, const char* added, bool usual) -> std::optional<std::int64_t> {
    const bool adds = file.has(added) ? file.flag(added) : usual;
    return adds && file.has(key) ? std::optional(file.integer(key)) : std::nullopt;
  };
  std::vector<std::int32_t> types;
  if (file.has("tokenizer.ggml.token_type"))
    for (const std::int64_t type : file.integers("tokenizer.ggml.token_type")) types.push_back(std::int32_t(type));
  const bool scored = model == "llama";
  const auto begin = special("tokenizer.ggml.bos_token_id", "tokenizer.ggml.add_bos_token", scored);
  const auto end = special("tokenizer.ggml.eos_token_id", "tokenizer.ggml.add_eos_token", false);
  if (scored) {
    std::vector<float> scores;
    for (const double score : file.numbers("tokenizer.ggml.scores")) scores.push_back(float(score));
    const bool space = !file.has("tokenizer.ggml.add_space_prefix") || file.flag("tokenizer.ggml.add_space_prefix");
    return tokenizer_of_scores({.pieces = file.texts("tokenizer.ggml.tokens"),
                                .scores = std::move(scores),
                                .types = std::move(types),
                                .space_in_front = space,
                                .begin = begin,
                                .end = end});
  }
  if (model != "gpt2") throw Error("tokenizer.ggml.model: expected llama or gpt2, got " + model);
  return tokenizer_of_merges({.pieces = file.texts("tokenizer.ggml.tokens"),
                              .merges = file.texts("tokenizer.ggml.merges"),
                              .types = std::move(types),
                              .words = file.has("tokenizer.ggml.pre") ? file.text("tokenizer.ggml.pre") : "default",
                              .begin = begin,
                              .end = end});
}
}  // namespace

std::string find_gguf(const std::string& path) {
  std::error_code none;
  if (path.ends_with(".gguf") && fs::is_regular_file(path, none)) return path;
  if (!fs::is_directory(path, none) || fs::exists(path + "/config.json", none)) return "";
  std::string found;
  for (const auto& entry : fs::directory_iterator(path, none)) {
    if (entry.path().extension() != ".gguf") continue;
    if (!found.empty()) return "";  // which one?
    found = entry.path().string();
  }
  return found;
}

namespace {
/// What is read of a file of one of our architectures, with the path in every error.
template <class Read>
auto read_file(const std::string& path, Read read) {
  const Gguf file(path);
  try {
    const std::string architecture = file.text("general.architecture");
    if (std::ranges::find(kArchitectures, architecture) == kArchitectures.end())
      throw Error("general.architecture: expected llama, qwen2 or qwen3, got " + architecture);
    return read(file, architecture);
  } catch (const Error& problem) {
    const std::string text = problem.what();
    throw Error(text.starts_with(path) ? text : path + ": " + text);
  }
}
}  // namespace

GgufModel read_gguf_model(const std::string& path, std::optional<Type> storage) {
  return read_file(path, [&](const Gguf& file, const std::string& architecture) -> GgufModel {
    return {.config = config_of(file, architecture),
            .weights = weights_of(file, architecture, storage),
            .tokenizer = tokenizer_of(file),
            .ends = ends_of(file),
            .chat_template = file.has("tokenizer.chat_template") ? file.text("tokenizer.chat_template") : ""};
  });
}

std::string read_gguf_config(const std::string& path) {
  return read_file(path, [](const Gguf& file, const std::string& architecture) { return config_of(file, architecture); });
}

std::unique_ptr<const Tokenizer> read_gguf_tokenizer(const std::string& path) {
  return read_file(path, [](const Gguf& file, const std::string&) { return tokenizer_of(file); });
}

}  // namespace isomer

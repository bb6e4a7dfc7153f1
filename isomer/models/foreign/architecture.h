#pragma once
// Models of Hugging Face's transformers and of flash-linear-attention: one short file an architecture says what its config.json
// means (a ModelConfig) and which of its weights are ours (a WeightTable).
//
//   const ForeignConfig config(read_text(path), path);  // of config.json
//   const Architecture& architecture = find_architecture(config);
//   const ModelConfig model = model_of(architecture, config, numbers);
//   const WeightTable table = weights_of(architecture, config);
//
// A new architecture is a file beside llama.cc and a line in architectures.cc. What a config asks for and we do not have is
// refused in one line, never passed over: every key that changes what a model computes is read.
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/io/json.h"
#include "isomer/models/config.h"
#include "isomer/models/foreign/weight_table.h"

namespace isomer {

/// A config.json of another library. Every error names the file.
class ForeignConfig {
 public:
  /// Throws Error for what is no JSON object with a model_type. NaN and Infinity, which Python writes, are understood.
  ForeignConfig(std::string_view text, std::string name);

  [[nodiscard]] const std::string& type() const { return type_; }
  /// The class that was saved, "LlamaForCausalLM"; empty where the file does not say.
  [[nodiscard]] const std::string& model_class() const { return class_; }
  [[nodiscard]] bool is_for(std::string_view head) const { return class_.ends_with(head); }
  [[nodiscard]] const std::string& name() const { return name_; }

  [[nodiscard]] bool has(const char* key) const;
  /// Sizes are at least 1 and below 2^31. Without a fallback the key must be there; null counts as not there.
  [[nodiscard]] Index size(const char* key) const;
  [[nodiscard]] Index size(const char* key, Index fallback) const;
  /// How many layers, as many as a model may have.
  [[nodiscard]] Index layers(const char* key = "num_hidden_layers") const;
  [[nodiscard]] double number(const char* key, double fallback) const;
  [[nodiscard]] bool flag(const char* key, bool fallback) const;
  [[nodiscard]] std::string text(const char* key, const char* fallback) const;
  /// The text at a place of a list, which must be one of these; `fallback` says which it is where there is no list.
  [[nodiscard]] std::string text_at(const char* key, Index place, const std::vector<const char*>& known,
                                    std::size_t fallback) const;
  [[nodiscard]] const Json* find(const char* key) const;
  [[nodiscard]] const Json& json() const { return json_; }
  /// A nested object, with the same errors.
  [[nodiscard]] ForeignConfig part(const char* key) const;
  /// Throws Error unless the text of the key is one of these; `fallback` is what it is when it is not there.
  std::string one_of(const char* key, std::initializer_list<const char*> known, const char* fallback) const;
  /// Throws Error unless the key is not there, null, false, 0 or 1 for a multiplier, or empty: what we do not have.
  void without(std::initializer_list<const char*> keys) const;
  /// Throws Error unless the key is not there, or from 0 to infinity.
  void without_limit(const char* key) const;
  [[noreturn]] void fail(const std::string& what) const;
  /// How many labels the head of a classifier has, and their names where there are some.
  [[nodiscard]] std::vector<std::string> labels() const;
  [[nodiscard]] Index classes() const;

 private:
  ForeignConfig(Json json, std::string name, std::string type);
  Json json_;
  std::string name_, type_, class_;
};

struct Architecture {
  std::string_view name;                // in documents and lists
  std::vector<std::string_view> types;  // model_type of config.json
  ModelConfig (*model)(const ForeignConfig& config);
  void (*weights)(const ForeignConfig& config, WeightTable& table);
};

/// All, in the order of the alphabet.
[[nodiscard]] const std::vector<const Architecture*>& architectures();
/// Throws Error naming those that there are.
[[nodiscard]] const Architecture& find_architecture(const ForeignConfig& config);
[[nodiscard]] ModelConfig model_of(const Architecture& architecture, const ForeignConfig& config);
/// The model of a folder whose weights are `numbers` in all. Throws Error for one that cannot be theirs, before anything is made
/// of its sizes.
[[nodiscard]] ModelConfig model_of(const Architecture& architecture, const ForeignConfig& config, Index numbers);
[[nodiscard]] WeightTable weights_of(const Architecture& architecture, const ForeignConfig& config);

/// Is the text of a config.json one of another library, and not ours?
[[nodiscard]] bool is_foreign(std::string_view config);

// What architectures share.
/// Options of a mixer, written as settings are.
[[nodiscard]] std::string text_of_option(double number);
/// rope_base and the scaling of angles by the keys rope_theta and rope_scaling (or rope_parameters); `theta`: in their place.
/// The part of a head, of option key, that is rotated by partial_rotary_factor; `part`: where it is not there.
void rope_options(const ForeignConfig& config, Settings& options, double theta = 0, double part = 1);
/// What language models have around their layers, by its names in another library.
struct Frame {
  const char* base = "model.";  // in front of all but the head, in a model that has one
  const char* embedding = "embed_tokens";
  const char* norm = "norm";  // behind the last layer
  double norm_plus = 0;       // its weight is theirs plus this
  bool tied = false;          // the head is the embedding; else it is lm_head
  bool norm_bias = false;     // of the last norm
};
/// Embedding, last norm, head, and of each of num_hidden_layers layers what `layer` says.
void frame_weights(const ForeignConfig& config, WeightTable& table, const Frame& frame,
                   const std::function<void(const WeightTable::Scope& layer, Index number)>& layer);
/// NAME_proj for each NAME.
void projections(const WeightTable::Scope& scope, std::initializer_list<const char*> names, bool bias = false);
/// gate_proj, up_proj and down_proj of a layer's MLP.
void mlp_weights(const WeightTable::Scope& layer, std::string_view theirs = "mlp.", bool bias = false);

}  // namespace isomer

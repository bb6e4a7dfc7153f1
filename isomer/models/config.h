#pragma once
// A model as data: what stands in front of the blocks, what mixer each block has, what is read off at the end. It is the
// config.json of a checkpoint.
//
//   ModelConfig config{.kind = ModelKind::language,
//                      .width = 256,
//                      .layers = {{"mlstm"}, {"sliding-window", {{"window", "128"}}}},
//                      .vocabulary = 256};
//   write_text(path, to_json(config));
//   ModelConfig same = model_config(read_text(path), path);
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/laws/law.h"
#include "isomer/mixers/graph.h"
#include "isomer/nn/block.h"

namespace isomer {

/// What goes in is a sequence of tokens if there is a vocabulary, else of vectors of `features` numbers.
///   language     a label at every token
///   classifier   one class for the sequence, from the mean of all tokens
///   encoder      the same; mixers see the whole sequence at every token where they can (causal=false)
///   vision       an encoder of patches
///   regression   a vector of `outputs` numbers, read at the last token
///   autoencoder  a label at every token, decoded from the last token alone (compression of MAD, Poli et al. 2024)
///   masked       a label at every token, from all tokens (BERT)
///   embedding    an encoder whose output is the vector that it reads for the sequence, of length one; it has no labels
///   table        a label at every row of a table, from those of its first rows, which are given and all that any row looks at
///                (TabPFN, Hollmann et al. 2022)
enum class ModelKind : std::uint8_t { language, classifier, encoder, vision, regression, autoencoder, masked, embedding, table };
[[nodiscard]] std::string_view name_of(ModelKind kind);
/// Throws Error naming the nearest when there is none of that name.
[[nodiscard]] ModelKind model_kind_named(std::string_view name);
/// Is there a label at every token, and not one for the sequence?
[[nodiscard]] bool labels_tokens(ModelKind kind);

/// Which vector stands for a sequence: the mean of its tokens, that of the first, or of the last.
enum class Pool : std::uint8_t { mean, first, last };
[[nodiscard]] std::string_view name_of(Pool pool);
[[nodiscard]] Pool pool_named(std::string_view name);

/// Between the two layers of a head: exact GELU, ReLU, or nothing.
enum class HeadActivation : std::uint8_t { gelu, relu, none };
[[nodiscard]] std::string_view name_of(HeadActivation activation);
[[nodiscard]] HeadActivation head_activation_named(std::string_view name);

struct LayerConfig {
  std::string preset;
  Settings options = {};
  std::optional<NormPlace> norm_place = {};  // if it is another than the model's
};

struct ModelConfig {
  ModelKind kind = ModelKind::language;
  Index width = 128;
  std::vector<LayerConfig> layers = {};
  MlpKind mlp = MlpKind::swiglu;
  double mlp_factor = 0;  // hidden / width; 0: 4, with a gate 8/3
  Index mlp_hidden = 0;   // if not 0, in place of the factor
  bool mlp_bias = false;
  Norm norm = Norm::rms;
  double norm_eps = NormOptions{}.eps;
  NormPlace norm_place = NormPlace::before;
  bool layer_scale = false;       // a learned factor for each channel of what mixer and MLP add
  bool tied = true;               // language, autoencoder: the output projection is the embedding
  double dropout = 0;             // of embeddings and residual branches
  double logit_cap = 0;           // c·tanh(x/c) on logits; 0: none
  bool positions = false;         // a learned vector for each position is added in front
  bool fixed_positions = false;   // which are sines and not learned
  Index types = 0;                // kinds of tokens that have a vector too, as the two texts of a pair in BERT
  bool front_norm = false;        // a norm in front of the first layer
  bool last_norm = true;          // a norm behind the last
  bool class_token = false;       // a learned token in front of those of the input
  double embedding_scale = 1;     // of the embedding's vectors, before positions
  Pool pool = Pool::mean;         // classifier, encoder, vision, embedding
  bool pooler = false;            // of that vector, tanh(W x + b) is read
  bool head_transform = false;    // masked: labels are read from norm(gelu(W x + b)), exact GELU
  bool head_bias = false;         // of labels of tokens; those of sequences have one
  Index head_hidden = 0;          // if not 0, labels are read from f(W x + b) of so many numbers
  double deviation = kDeviation;  // of weights at the start, unless their mixer says otherwise
  double qk_identity = 0;         // such q and k start with so much of the unit matrix too: like tokens attend to each other
  Index vocabulary = 0;           // different tokens; 0: the inputs are vectors
  Index classes = 0;              // different labels; 0: as many as tokens
  Index features = 0;             // numbers of an input vector
  Index outputs = 0;              // numbers of a target vector
  Index length = 0;               // tokens of the longest sequence; with positions: how many have a vector
  std::vector<std::string> labels = {};                   // their names; empty: they have none
  HeadActivation head_activation = HeadActivation::gelu;  // f of head_hidden
  // Vectors become those of the first layer by convolutions over three of them (nn/modules.h) with exact GELU behind each: their
  // strides. Empty: by a projection of each vector.
  std::vector<Index> convolutions = {};
};

/// Layers that a model may have.
inline constexpr Index kMostLayers = 4096;
/// Layers between the last token and the labels of an autoencoder.
inline constexpr Index kDecoderLayers = 2;

/// How many tokens of the first layer a sequence of so many inputs becomes; convolutions with a stride leave some out.
[[nodiscard]] Index tokens_of(const ModelConfig& config, Index inputs);

/// Throws Error for a config that no model can be made of.
void check(const ModelConfig& config);

/// The mixer of a layer. Output projections that start as everything else start smaller, by √(2 · layers), so that the sum of
/// all branches starts as one (Radford et al. 2019; the MQAR models of Arora et al. 2023). With qk_identity, scores start near
/// those of equal projections (mimetic initialisation, Trockman and Kolter 2023).
[[nodiscard]] graph::Graph layer_graph(const ModelConfig& config, Index layer);
/// The MLP, which is the same in every layer but for what it starts with, and what stands around it and the mixer in one.
[[nodiscard]] MlpOptions mlp_options(const ModelConfig& config, Index layer = 0);
[[nodiscard]] BlockOptions block_options(const ModelConfig& config, Index layer);
/// Rows of the output projection.
[[nodiscard]] Index labels_of(const ModelConfig& config);

/// With the version of the format and the fingerprint of every layer. Throws Error as check() does.
[[nodiscard]] std::string to_json(const ModelConfig& config);
/// Throws Error "NAME: …" for what is not JSON, a newer version, an unknown or missing key, a value that does not fit, and for a
/// layer that is another one here than where it was saved.
[[nodiscard]] ModelConfig model_config(std::string_view json, const std::string& name);

}  // namespace isomer

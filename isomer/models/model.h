#pragma once
// A model: something in front (embedding, or a projection of vectors), blocks, a norm, and something to read off at the end.
//
//   Parameters<float> parameters;
//   const Model<float> model(config, parameters);                   // config.h
//   initialise(parameters, seed);
//   Executor<float> executor(model, context);                       // executor.h: runs it
//
// Names of parameters: embedding.weight, input.{weight,bias} or convolutions.N.{weight,bias}, class_token, positions.weight,
// types.weight, front_norm.…, known.{weight,bias} (where there are any), layers.N.{norm1,mixer,norm2,mlp}.… (nn/block.h),
// shared.PRESET.… (what layers of a preset have in common), norm.weight, decoder.N.… (autoencoder), pooler.…,
// transform.{linear,norm}.… (of a masked model's head), head_hidden.…, head.weight (head.bias unless the head is one of tokens
// without). The head of a tied model is the embedding.
//
// A model is weights and never changes as it runs, and it stays where it is. What a pass computes is the tape's, what a stream
// remembers is the state's: any number of threads may run one model, each on tapes and states of its own, as long as none of them
// goes back (gradients are the parameters'). After the first call with a shape nothing is allocated on the heap but what a state
// grows by.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "isomer/autograd/sequences.h"
#include "isomer/models/config.h"
#include "isomer/models/links.h"
#include "isomer/models/model_input.h"
#include "isomer/models/model_state.h"
#include "isomer/nn/block.h"

namespace isomer {

/// The spans are valid as long as the tape's values.
struct ModelResult {
  double loss = 0;                               // the mean over labels of the cross-entropy, or the mean squared error
  Index count = 0, correct = 0;                  // labels; of them, those with the largest logit (regression: targets, none)
  std::span<const std::int64_t> predicted = {};  // for every label the largest logit, −1 where the label does not count
  std::span<const float> outputs = {};           // regression: [B, outputs]
};

/// What a model says before a loss is taken of it. The values stay on the tape until it is cleared.
template <class T>
struct ModelOutput {
  Var<T> hidden;  // [B, T, 1, width], after the last norm
  // [B, T, 1, labels], or [B, 1, 1, labels] where a sequence has one label; regression: [B, 1, 1, outputs]; embedding: the
  // vector of the sequence, [B, 1, 1, width]
  Var<T> logits;
};

/// What one pass has of its own. Dropout depends on (seed, step) alone.
struct Pass {
  std::uint64_t seed = 0, step = 0;
  Index window = 0;  // of every layer with a window; 0: their own
  // [T, T], 1: as if that key were not there for that query. For looking at models that see the whole input; not recorded.
  std::span<const std::uint8_t> hidden = {};
  bool dropout = false;    // as the config says
  bool recompute = false;  // blocks run again in the backward pass instead of keeping what they computed
  // Of an input that is a part of a batch, so that the gradients of all parts add up to those of the batch:
  Index first = 0;   // the sequence of the batch that it begins with
  double count = 0;  // what its gradients are divided by: the labels of the whole batch; 0: its own
};

template <class T>
class Model {
 public:
  /// Throws Error for a config that no model can be made of.
  Model(const ModelConfig& config, Parameters<T>& parameters);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] const Block<T>& block(Index layer) const { return blocks_[std::size_t(layer)]; }

  /// The states of all layers, and behind them those of their MLPs that have one, as values of a tape (nn/state_values.h), before
  /// the first of B sequences' tokens.
  using States = std::vector<StateValues<T>>;
  [[nodiscard]] States start(Index B, Tape<T>& tape) const;

  /// Runs forward; on a tape that records, tape.backward() comes next. Throws Error for inputs of another size than expected.
  /// With `states` the sequences go on from them, and they become what the sequences end in (language models).
  ModelResult loss(Tape<T>& tape, const ModelInput& in, const Pass& pass = {}, States* states = nullptr) const;

  /// Runs forward and reads no labels or targets, which may be absent. Throws Error for inputs of another size than expected.
  [[nodiscard]] ModelOutput<T> logits(Tape<T>& tape, const ModelInput& in, const Pass& pass = {}) const;
  /// The same of a language model whose sequences go on from a state, which then has seen the tokens [B, n] too, or those that
  /// the offsets [B + 1] pack into one row.
  [[nodiscard]] ModelOutput<T> logits(Tape<T>& tape, std::span<const std::int64_t> tokens, ModelState<T>& state,
                                      std::span<const std::int64_t> offsets = {}) const;

  /// Where the first value that is not finite comes from: "the embedding", "layer 3 (gla)", "the output"; empty if there is
  /// none. Clears the tape.
  [[nodiscard]] std::string first_not_finite(Tape<T>& tape, const ModelInput& in, const Pass& pass = {}) const;
  /// The same of gradients, in the order in which the backward pass comes to them: from the output to the embedding.
  [[nodiscard]] std::string first_gradient_not_finite(const Parameters<T>& parameters) const;

  /// Calls visit(layer, x, taken) with the input of every block and what its mixer takes from others, which stay until visit
  /// returns. Records nothing.
  using Visit = std::function<void(Index layer, Var<T> x, std::span<const Var<T>> taken)>;
  void visit_blocks(Tape<T>& tape, const ModelInput& in, const Visit& visit) const;

  /// Streaming, for language models. Logits [B, vocabulary] are those after the last token; they are the state's, valid until its
  /// next call. What the tape held stays as it was.
  [[nodiscard]] ModelState<T> start(Index B) const;
  [[nodiscard]] ModelState<T> load_state(const std::string& path) const;
  /// tokens [B, n], n > 0; or with offsets [B + 1] those of the sequences one behind the other, as many as each has: one that has
  /// none keeps its logits.
  View<const T, 2> prefill(Tape<T>& tape, std::span<const std::int64_t> tokens, ModelState<T>& state,
                           std::span<const std::int64_t> offsets = {}) const;
  /// Bytes of weights that a step reads: of tables of vectors one, of everything else all.
  [[nodiscard]] Index step_bytes(const Parameters<T>& parameters) const;
  /// tokens [B].
  View<const T, 2> step(Tape<T>& tape, std::span<const std::int64_t> tokens, ModelState<T>& state) const;

 private:
  struct Decoder {
    NormLayer<T> norm;
    Linear<T> linear;
  };
  /// What a block takes from others, and how many of its own values they take.
  struct Links {
    std::vector<Link> from;
    std::size_t given = 0;
  };
  /// Values of a pass that go into a block and out of it: first x, then what mixers take and give. The tape's.
  struct Flow {
    std::span<Var<T>> in, out;
    [[nodiscard]] MixerPass<T> pass() const { return {.taken = in.subspan(1), .given = out.subspan(1)}; }
  };
  /// What all blocks of a pass have in common.
  struct Along {
    const Pass& pass;
    std::span<const std::int64_t> offsets;
    std::span<const Index> lengths;
    States* states = nullptr;
    Index seen = 0;  // the rows that all look at; 0: all of them
  };
  /// Of all that may have a state: the mixers, and behind them the MLPs that remember a token.
  [[nodiscard]] std::vector<const graph::Graph*> graphs() const;
  [[nodiscard]] std::size_t states() const { return blocks_.size() * (config_.mlp == MlpKind::channel_mix ? 2 : 1); }
  /// The state of a layer's MLP among all; null where it has none.
  template <class All>
  [[nodiscard]] auto* mlp_state(All& all, std::size_t layer) const {
    return all.size() > blocks_.size() ? &all[blocks_.size() + layer] : nullptr;
  }
  void link_blocks();
  /// Of all blocks of a pass.
  [[nodiscard]] std::span<Flow> flows(Tape<T>& tape) const;
  /// With what earlier blocks of this pass gave.
  [[nodiscard]] const Flow& flow_into(std::span<Flow> flows, std::size_t layer, Var<T> x) const;
  [[nodiscard]] std::string name_of_layer(std::size_t layer) const;
  [[nodiscard]] const char* name_of_front() const { return embedding_ ? "the embedding" : "the input"; }
  [[nodiscard]] Index streams() const { return 2 * Index(blocks_.size()) + 1; }
  void check_input(const ModelInput& in, const States* states = nullptr) const;
  void check_targets(const ModelInput& in) const;
  void check_stream(std::span<const std::int64_t> tokens, std::span<const std::int64_t> offsets, ModelState<T>& state) const;
  /// With the labels of the rows that are known.
  [[nodiscard]] Var<T> with_known(Tape<T>& tape, Var<T> x, const ModelInput& in) const;
  [[nodiscard]] Var<T> front(Tape<T>& tape, const ModelInput& in, const Along& along) const;
  [[nodiscard]] Var<T> blocks(Tape<T>& tape, Var<T> x, const Along& along) const;
  [[nodiscard]] Var<T> run_block(Tape<T>& tape, const Flow& flow, std::size_t layer, const Along& along) const;
  /// The blocks on tokens [B, n], or packed ones, that come after those that the state has seen.
  [[nodiscard]] Var<T> streamed(Tape<T>& tape, View<const std::int64_t, 2> tokens, std::span<const std::int64_t> offsets,
                                ModelState<T>& state) const;
  /// With what stands in front of the first layer beside the tokens' own vectors.
  [[nodiscard]] Var<T> placed(Tape<T>& tape, Var<T> x, std::span<const std::int64_t> types, const Sequences& places) const;
  [[nodiscard]] Var<T> normed(Tape<T>& tape, Var<T> x) const { return norm_ ? (*norm_)(tape, x) : x; }
  /// Of token vectors, what a head of tokens reads.
  [[nodiscard]] Var<T> transformed(Tape<T>& tape, Var<T> x) const;
  [[nodiscard]] Var<T> projected(Tape<T>& tape, Var<T> x) const;
  [[nodiscard]] Var<T> pooled(Tape<T>& tape, Var<T> x, const ModelInput& in) const;
  /// The tokens of rows as they are inside: lengths with the class token.
  [[nodiscard]] std::span<const Index> kept_lengths(Tape<T>& tape, const ModelInput& in) const;
  [[nodiscard]] Var<T> decoded(Tape<T>& tape, Var<T> x) const;
  ModelResult read_labels(Tape<T>& tape, Var<T> x, const ModelInput& in, const Pass& pass) const;
  ModelResult read_targets(Tape<T>& tape, Var<T> x, const ModelInput& in, const Pass& pass) const;

  ModelConfig config_;
  std::optional<Embedding<T>> embedding_;
  Var<T> class_token_, positions_;
  std::optional<Embedding<T>> types_;
  std::optional<NormLayer<T>> front_norm_;
  std::optional<Linear<T>> input_, known_;
  std::vector<Convolution<T>> convolutions_;
  std::vector<Block<T>> blocks_;
  std::vector<Links> links_;  // of each block
  std::optional<NormLayer<T>> norm_;
  std::vector<Decoder> decoder_;
  std::optional<Linear<T>> pooler_, head_hidden_;
  std::optional<Decoder> transform_;
  Var<T> head_, head_bias_;
};

extern template class Model<float>;
extern template class Model<double>;

}  // namespace isomer

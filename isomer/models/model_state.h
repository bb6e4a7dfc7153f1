#pragma once
// What a model remembers of the tokens it has seen: the states of its layers, and behind them those of their MLPs where these
// remember a token (channel-mix). A plain value: copy it to fork a stream.
//
//   ModelState<float> state = model.start(1);
//   ModelState<float> fork = state;                       // two continuations of one prompt
//   fork.append(state);                                   // two sequences in one state
//   state.save("state.safetensors");
//   ModelState<float> later = model.load_state("state.safetensors");
#include <span>
#include <string>
#include <vector>

#include "isomer/io/safetensors.h"
#include "isomer/nn/mixer_state.h"

namespace isomer {

template <class T>
class ModelState {
 public:
  /// The state before the first of B sequences' tokens. Throws Error if a layer needs the whole sequence at once.
  ModelState(std::span<const graph::Graph* const> layers, Index B);

  [[nodiscard]] Index batch() const { return layers_[0].batch(); }
  /// Tokens seen so far of each sequence.
  [[nodiscard]] std::span<const std::int64_t> positions() const { return layers_[0].positions(); }
  /// Of all numbers that are kept.
  [[nodiscard]] Index bytes() const;

  /// Sequence i alone, and the sequences of another state of the model behind its own.
  [[nodiscard]] ModelState sequence(Index i) const;
  void append(const ModelState& other);

  /// All numbers by name: layers.N.{batch, positions, nodes.M.NAME} and, after a token, logits [B, labels].
  [[nodiscard]] Tensors tensors() const;
  /// Short texts that go into its file.
  Metadata notes = {};

  /// A safetensors file that says to which layers it belongs, with the logits after the last token.
  void save(const std::string& path) const;
  /// Throws Error "cannot load PATH: …" when the file is damaged, of a newer version, or of another model.
  [[nodiscard]] static ModelState load(const std::string& path, std::span<const graph::Graph* const> layers);

  // For the model.
  [[nodiscard]] std::vector<MixerState<T>>& layers() { return layers_; }
  /// Where the logits after the last token go, [B, vocabulary].
  [[nodiscard]] View<T, 2> logits(Index vocabulary) {
    logits_.resize(std::size_t(batch() * vocabulary));
    return contiguous(logits_.data(), {batch(), vocabulary});
  }
  [[nodiscard]] bool has_logits() const { return !logits_.empty(); }
  [[nodiscard]] Index logits_size() const { return Index(logits_.size()); }

 private:
  std::string fingerprint_;
  std::vector<MixerState<T>> layers_;
  std::vector<T> logits_;
};

extern template class ModelState<float>;
extern template class ModelState<double>;

}  // namespace isomer

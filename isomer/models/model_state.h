#pragma once
// What a model remembers of the tokens it has seen: the states of its layers. A plain value: copy it to fork a stream.
//
//   ModelState<float> state = model.start(1);
//   ModelState<float> fork = state;                       // two continuations of one prompt
//   state.save("state.safetensors");
//   ModelState<float> later = model.load_state("state.safetensors");
#include <span>
#include <string>
#include <vector>

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

  /// A safetensors file that says to which layers it belongs.
  void save(const std::string& path) const;
  /// Throws Error "cannot load PATH: …" when the file is damaged, of a newer version, or of another model.
  static ModelState load(const std::string& path, std::span<const graph::Graph* const> layers);

  // For the model.
  [[nodiscard]] std::vector<MixerState<T>>& layers() { return layers_; }
  /// Where the logits after the last token go, [B, vocabulary].
  [[nodiscard]] View<T, 2> logits(Index vocabulary) {
    logits_.resize(std::size_t(batch() * vocabulary));
    return contiguous(logits_.data(), {batch(), vocabulary});
  }

 private:
  std::string fingerprint_;
  std::vector<MixerState<T>> layers_;
  std::vector<T> logits_;
};

extern template class ModelState<float>;
extern template class ModelState<double>;

}  // namespace isomer

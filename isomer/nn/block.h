#pragma once
// A layer of a model: y = x + mixer(norm(x)), then y + mlp(norm(y)) unless there is no MLP.
//
//   Block<float> block(build_mixer("gla", {.width = 256, .layer = 0, .layers = 4}), parameters, "layers.0", {});
//   Var<float> y = block.forward(tape, x);                       // x, y [B, T, 1, width]
//
//   MixerState<float> state = block.start(1);
//   Var<float> next = block.prefill(tape, tokens, state);        // as Mixer::prefill; one token is a step
//
// Parameters: NAME.norm1, NAME.mixer, and with an MLP NAME.norm2, NAME.mlp. Weights only, as its mixer: any number of threads may
// run it.
#include <optional>
#include <string>

#include "isomer/autograd/dropout.h"
#include "isomer/nn/mixer.h"
#include "isomer/nn/modules.h"

namespace isomer {

struct BlockOptions {
  NormOptions norm = {};
  MlpOptions mlp = {};
};

template <class T>
class Block {
 public:
  Block(graph::Graph mixer, Parameters<T>& parameters, const std::string& name, const BlockOptions& options = {});

  [[nodiscard]] const Mixer<T>& mixer() const { return mixer_; }
  /// What the mixer sees of the block's input.
  [[nodiscard]] Var<T> mixer_input(Tape<T>& tape, Var<T> x) const { return norm1_(tape, x); }

  /// Dropout acts on what the mixer and the MLP add; it takes the streams `dropout.stream` and the one behind it.
  [[nodiscard]] Var<T> forward(Tape<T>& tape, Var<T> x, const DropoutOptions& dropout = {.rate = 0},
                               const MixerPass<T>& pass = {}) const;

  [[nodiscard]] MixerState<T> start(Index B) const { return mixer_.start(B); }
  [[nodiscard]] Var<T> prefill(Tape<T>& tape, Var<T> x, MixerState<T>& state, const MixerPass<T>& pass = {}) const;

 private:
  [[nodiscard]] Var<T> with_mlp(Tape<T>& tape, Var<T> x, const DropoutOptions& dropout) const;

  NormLayer<T> norm1_;
  Mixer<T> mixer_;
  std::optional<NormLayer<T>> norm2_;
  std::optional<Mlp<T>> mlp_;
};

extern template class Block<float>;
extern template class Block<double>;

}  // namespace isomer

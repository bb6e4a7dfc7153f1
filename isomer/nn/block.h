#pragma once
// A layer of a model: y = x + mixer(norm(x)), then y + mlp(norm(y)) unless there is no MLP; NormPlace has the norms elsewhere.
//
//   Block<float> block(build_mixer("gla", {.width = 256, .layer = 0, .layers = 4}), parameters, "layers.0", {});
//   Var<float> y = block.forward(tape, x);                       // x, y [B, T, 1, width]
//
//   MixerState<float> state = block.start(1);
//   Var<float> next = block.prefill(tape, tokens, state);        // as Mixer::prefill; one token is a step
//
// An MLP that remembers a token (channel-mix) has a state of its own, which goes beside that of the mixer.
//
// Parameters: NAME.norm1, NAME.mixer, and with an MLP NAME.norm2, NAME.mlp; NormPlace::both: NAME.norm1_out, NAME.norm2_out;
// with a scale NAME.scale1, NAME.scale2 (of what mixer and MLP add). Weights only, as its mixer: any number of threads may
// run it.
#include <optional>
#include <string>

#include "isomer/autograd/dropout.h"
#include "isomer/nn/mixer.h"
#include "isomer/nn/modules.h"

namespace isomer {

/// Where a block has its norms, f being its mixer or its MLP.
///   before  x + f(norm(x))                           GPT-2, Llama
///   after   norm(x + f(x))                           BERT (Vaswani et al. 2017)
///   both    x + norm_out(f(norm(x)))                 Gemma 3
///   branch  x + norm(f(x))                           OLMo 2
enum class NormPlace : std::uint8_t { before, after, both, branch };
[[nodiscard]] std::string_view name_of(NormPlace place);
/// Throws Error naming the nearest when there is none of that name.
[[nodiscard]] NormPlace norm_place_named(std::string_view name);

struct BlockOptions {
  NormOptions norm = {};
  MlpOptions mlp = {};
  NormPlace place = NormPlace::before;
  bool scale = false;  // a learned factor for each channel of what is added (LayerScale, Touvron et al. 2021)
};

template <class T>
class Block {
 public:
  Block(graph::Graph mixer, Parameters<T>& parameters, const std::string& name, const BlockOptions& options = {});

  [[nodiscard]] const Mixer<T>& mixer() const { return mixer_; }
  /// What the mixer sees of the block's input.
  [[nodiscard]] Var<T> mixer_input(Tape<T>& tape, Var<T> x) const { return mixed_.input(tape, x); }

  /// What an MLP with a state computes; null where it has none.
  [[nodiscard]] const graph::Graph* mlp_graph() const { return channel_mix_ ? &channel_mix_->graph() : nullptr; }

  /// Dropout acts on what the mixer and the MLP add; it takes the streams `dropout.stream` and the one behind it. `mlp`: the
  /// state of an MLP that has one, where the pass has that of the mixer.
  [[nodiscard]] Var<T> forward(Tape<T>& tape, Var<T> x, const DropoutOptions& dropout = {.rate = 0},
                               const MixerPass<T>& pass = {}, StateValues<T>* mlp = nullptr) const;

  [[nodiscard]] MixerState<T> start(Index B) const { return mixer_.start(B); }
  /// `mlp` as in forward().
  [[nodiscard]] Var<T> prefill(Tape<T>& tape, Var<T> x, MixerState<T>& state, const MixerPass<T>& pass = {},
                               MixerState<T>* mlp = nullptr) const;

 private:
  /// The norms and the sum around a mixer or an MLP.
  class Branch {
   public:
    Branch(Parameters<T>& parameters, const std::string& block, int number, Index width, const BlockOptions& options);
    [[nodiscard]] Var<T> input(Tape<T>& tape, Var<T> x) const { return before_ ? (*before_)(tape, x) : x; }
    /// x with what the mixer or MLP made of its input added.
    [[nodiscard]] Var<T> sum(Tape<T>& tape, Var<T> x, Var<T> made, const DropoutOptions& dropout) const;

   private:
    std::optional<NormLayer<T>> before_, out_, after_;
    Var<T> scale_;
  };
  /// made(x): what the MLP makes of its input.
  template <class F>
  [[nodiscard]] Var<T> with_mlp(Tape<T>& tape, Var<T> x, DropoutOptions dropout, F made) const;

  Branch mixed_;
  Mixer<T> mixer_;
  std::optional<Branch> widened_;
  std::optional<Mlp<T>> mlp_;
  std::optional<Mixer<T>> channel_mix_;
};

extern template class Block<float>;
extern template class Block<double>;

}  // namespace isomer

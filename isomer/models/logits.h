#pragma once
// A model on the tensors of a file: logits, hidden values, loss and gradients by name, to compare a model with other code.
//
//   const std::unique_ptr<LoadedModel> model = load_model("runs/text");                    // model_folder.h
//   const Tensors out = logits_of(*model, read_safetensors("in.safetensors"), {}, context);
//
// in   tokens I64 [B, T]; models of vectors: inputs F32 [B, T, features], vision also pixels F32 [B, C, H, W], as the model was
//      trained on them (normalised), which are cut into squares: a vector has the rows of channel 0, then those of channel 1 …
//      mask I64 [B, T], 1 = token and then 0 = padding, where a sequence has one label: nothing sees the padding, as in training,
//      and it is left out of the mean that the label is read from; not for convolutions
//      types I64 [B, T], kinds of tokens where a model has them (BERT); not there: 0
//      offsets I64 [n + 1], from 0 to T and never decreasing, with B = 1: n sequences packed into the row (language models)
//      targets I64 [B, T], or [B] where a sequence has one label; −100 does not count; regression: F32 [B, outputs]
// out  hidden F32 [B, T, width], after the last norm; of as many tokens as convolutions in front leave (tokens_of in config.h)
//      logits F32 [B, T, labels], or [B, labels] where a sequence has one label; regression: its outputs
//      embedding F32 [B, width], of length one, in place of logits where a model has no labels
//      loss F32 [1] with targets: the mean over those that count
//      attention.layers.N.nodes.M F32 [B, heads, T, T] with attention: what token t of the output of the layer's law takes of
//      what token s writes; of laws whose channels have matrices of their own (scan: one head), the mean of their absolute values
//      state.NAME with states: what a stream remembers after the last token, by the names of its file (model_state.h)
//      grad.NAME with gradients: of the loss by every weight; zeros for one that is not trained
#include "isomer/models/model_folder.h"

namespace isomer {

struct LogitsOptions {
  bool stream = false;     // language models: a token at a time through the state
  bool gradients = false;  // needs targets
  bool attention = false;  // causal layers, up to kLongestSystem tokens (model_dsf.h)
  bool states = false;     // language models
};

/// Throws Error for a tensor that the model does not read (naming the nearest), a missing one, another type or shape than
/// expected, and tokens or targets out of range.
[[nodiscard]] Tensors logits_of(LoadedModel& loaded, const Tensors& in, const LogitsOptions& options, Context& context);

}  // namespace isomer

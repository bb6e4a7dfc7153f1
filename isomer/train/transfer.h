#pragma once
// Attention transfer (Zhang et al. 2024, Hedgehog): the layers of a converted model learn to do what the old ones did, each by
// itself on the input that the old model gives it, before the model as a whole is trained on.
//
//   std::vector<ConvertedParameter> fates = take_weights(from, to, layers);       // convert.h
//   const auto reports = transfer(from, to, fates, {.steps = 500}, context);      // each has before and after
//
// Only fresh parameters learn. Where the old layer is softmax attention and the new one divides sums of non-negative features by
// their sum, what is compared are their weights (autograd/loss.h, attention_divergence); elsewhere the outputs of the layers,
// as the squared error over the mean square of the old one's.
#include <functional>
#include <span>
#include <vector>

#include "isomer/train/convert.h"

namespace isomer {

struct TransferOptions {
  Index steps = 0;  // of AdamW, on batches of the size that the old run had
  double lr = 1e-2;
  std::function<void(Index step, double loss)> progress = {};  // of every step; the mean over layers
};

struct TransferReport {
  Index layer = 0;
  bool weights = false;          // or outputs
  double before = 0, after = 0;  // the loss on test examples
};

/// Has every converted layer something to learn?
[[nodiscard]] bool can_transfer(Session& to, std::span<const ConvertedParameter> fates);

/// One report a layer. Throws Error for a layer without fresh parameters that can learn, and NotFinite.
std::vector<TransferReport> transfer(Session& from, Session& to, std::span<const ConvertedParameter> fates,
                                     const TransferOptions& options, Context& context);

}  // namespace isomer

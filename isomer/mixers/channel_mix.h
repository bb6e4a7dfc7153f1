#pragma once
// RWKV's MLP: it sees the token before, so that it has a state, as mixers do, and is run as they are.
//
//   y = W_down relu(W_up x')²,  x' = x + (x of the token before - x) mix          Peng et al. 2025 (arXiv 2503.14456), eq. 22-23
//
// Parameters: mix [width], up.weight [hidden, width], down.weight [width, hidden]. They start as in RWKV-LM.
#include "isomer/mixers/graph.h"

namespace isomer {

/// `rest`: the part of the model's layers that is from this one on.
[[nodiscard]] graph::Graph channel_mix(Index width, Index hidden, double rest = 1);

}  // namespace isomer

#pragma once
// A mixer as ASCII equations, one line for each named value; values without a name are written inside those that use them.
//
//   q = rope(x W_q)
//   …
//   o = K^-1/2 S' q,   S = exp(log_decay) S + k v'
//   y = silu(gate) * o W_o
//
// W_n, b_n and w_n are the parameters called n; * is element by element and . a product over the channels of a head.
#include <string>
#include <vector>

#include "isomer/mixers/graph.h"

namespace isomer {

[[nodiscard]] std::vector<std::string> equations(const graph::Graph& graph);

}  // namespace isomer

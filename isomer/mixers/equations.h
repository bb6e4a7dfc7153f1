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

/// How an input of a law is called in its recurrence: as in `isomer apply`, but the x of scans, which is no layer's input.
[[nodiscard]] std::string law_symbol(const graph::Law& law, const std::string& role);
/// The recurrence of a law, with the inputs it has; one or more lines.
[[nodiscard]] std::vector<std::string> law_equations(const graph::Law& law);

}  // namespace isomer

#pragma once
// What a layer costs, read off its graph.
//
//   const Cost cost = cost_of(build_mixer("gla", {.width = 256}), 1024);
#include "isomer/mixers/graph.h"

namespace isomer {

struct Cost {
  Index parameters = 0;        // trained numbers
  double flops_per_token = 0;  // forward, on average over a sequence of T tokens
  double law_flops = 0;        // those of them that laws take
  Index state_floats = 0;      // what is kept whatever was seen: of laws, convolutions, shifts and sums
  Index state_per_token = 0;   // attention without a window: what is kept for every token seen
  double kept_floats = 0;      // about what training keeps of a token for the backward pass: values of nodes, states of chunks
};

/// A product of M × N × K is 2MNK flops, a law costs what its header says in the form that it takes for T tokens, a
/// transcendental function 10 flops, any other step on a number 1.
[[nodiscard]] Cost cost_of(const graph::Graph& graph, Index T);

/// Of the main law.
[[nodiscard]] StateDimension state_dimension(const graph::Graph& graph);

/// The numbers of one node's parameters, trained or not.
[[nodiscard]] Index parameters_of(const graph::Graph& graph, const graph::Node& node);

/// What a law node takes in place of Form::automatic for T tokens of one sequence.
[[nodiscard]] Choice plan_of(const graph::Graph& graph, const graph::Node& node, Index T, bool taped);

}  // namespace isomer

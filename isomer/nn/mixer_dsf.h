#pragma once
// The laws of a mixer as dynamical systems (mixers/dsf.h) on the inputs that the mixer gave them: the proof that they are the
// same, and what the view shows. For short sequences.
//
//   for (const LawCall& call : mixer.law_calls(tape, x)) error = std::max(error, dsf_error(call));
#include <string>
#include <vector>

#include "isomer/mixers/dsf.h"
#include "isomer/nn/mixer.h"

namespace isomer {

/// How far the system's outputs, by the recurrence and by its map, are from those of the law: the largest difference over all
/// sequences and heads, over the law's largest output. NaN counts as infinite.
[[nodiscard]] double dsf_error(const LawCall& call, const DsfOptions& options = {});

/// What the view shows of one head of a law (of a scan: all channels).
struct DsfView {
  std::string law;
  int node = -1;
  Index head = 0;
  Index channels = 0, features = 0;  // the state is one by the other
  struct Range {
    double low = 0, high = 0;
  };
  std::vector<Range> sizes;   // [T] smallest and largest |λ| of Λ_t
  std::vector<Range> angles;  // [T] smallest and largest angle of λ, in (−π, π]
  MemoryHorizon horizon;
  bool averaged = false;        // channels have maps of their own: `weights` are means of their absolute values
  std::vector<double> weights;  // [T, T] the effective attention matrix

  [[nodiscard]] Index state_dimension() const { return channels * features; }
  /// Over all tokens but the first, before which there is nothing to keep.
  [[nodiscard]] Range size_range() const;
};
/// Of every head of one of the call's sequences.
[[nodiscard]] std::vector<DsfView> dsf_views(const LawCall& call, Index sequence = 0);

/// What a mixer by itself may take from other layers (MixerPass::taken), as random as its input.
[[nodiscard]] std::vector<Var<double>> from_other_layers(Tape<double>& tape, const graph::Graph& graph, Index T,
                                                         std::uint64_t seed);

}  // namespace isomer

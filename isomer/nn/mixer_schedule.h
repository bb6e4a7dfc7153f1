#pragma once
// In which order the nodes of a mixer run, and which elementwise ones run as one pass. Used by the mixer only.
#include <vector>

#include "isomer/kernels/elementwise/fused.h"
#include "isomer/mixers/graph.h"

namespace isomer {

/// Elementwise nodes of as many numbers a token, of which none waits for something that waits for another.
struct NodeGroup {
  struct Result {
    int node, output;
  };
  /// A concatenation whose parts are written where they belong.
  struct Concat {
    int node;
    std::vector<int> outputs;
  };
  Index heads = 1;               // as which all of them are seen
  Index width = 0;               // numbers of a token
  std::vector<int> nodes = {};   // computed here
  std::vector<int> inputs = {};  // nodes
  std::vector<FusedStep> steps = {};
  std::vector<int> outputs = {};     // values
  std::vector<Result> results = {};  // nodes that others use
  std::vector<Concat> concats = {};

  [[nodiscard]] Fused plan() const { return {int(inputs.size()), steps, outputs}; }
};

struct MixerSchedule {
  struct Turn {
    int node, group;  // one of them; the other is −1
  };
  std::vector<NodeGroup> groups;
  std::vector<Turn> turns;
};

/// Elementwise nodes run as soon as they can, others in their order: so groups are large.
[[nodiscard]] MixerSchedule schedule_of(const graph::Graph& graph);

}  // namespace isomer

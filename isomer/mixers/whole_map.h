#pragma once
// Effective attention of a law that sees whole sequences (bidirectional attention, global linear attention). It keeps no state,
// so that no recurrence (dsf.h) says what its weights are: they are found by asking. With the identity for values, which the law
// is linear in, its outputs are the weights.
//
//   const std::vector<double> weights = whole_map(law, inputs, settings, outputs, 1);  // of head 1: [T, S]
#include <vector>

#include "isomer/base/tensor.h"
#include "isomer/laws/law.h"

namespace isomer {

/// [T, S] of a head of one sequence, with y = Φ v. Throws Error for several sequences, and when Φ v is not the given output:
/// weights that depend on values (a norm over the sum) are no matrix.
[[nodiscard]] std::vector<double> whole_map(const Law& law, const Tensors& inputs, const Settings& settings,
                                            const Tensors& outputs, Index head);

}  // namespace isomer

#pragma once
// The float32 speed that this machine reaches in a large product: what shares of peak in benchmarks are shares of.
#include "isomer/base/context.h"

namespace isomer {

/// GFLOP/s of the best of several products of about 1024³ on the threads of the context. Takes about 0.25 s.
/// The libraries of docs/decisions/0001-gemm.md reach the same within a few percent.
[[nodiscard]] double measure_peak(Context& context);

}  // namespace isomer

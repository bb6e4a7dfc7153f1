#pragma once
// What this machine can do: the speeds that shares in benchmarks are shares of.
#include "isomer/base/context.h"

namespace isomer {

/// GFLOP/s of the best of several products of about 1024³ on the threads of the context. Takes about 0.25 s.
/// The libraries of docs/decisions/0001-gemm.md reach the same within a few percent.
[[nodiscard]] double measure_peak(Context& context);

/// GB/s at which the threads of the context together read `bytes` of memory, over and over, by the median: what speeds of
/// programs that read all of their weights for little arithmetic are shares of. Takes about 0.25 s.
[[nodiscard]] double measure_read(Context& context, Index bytes);

}  // namespace isomer

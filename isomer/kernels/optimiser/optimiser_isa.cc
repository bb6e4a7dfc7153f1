#include "isomer/simd/target.h"
// The vectors first: optimiser_impl.h is written over them.
#include "isomer/kernels/optimiser/optimiser_impl.h"

namespace isomer {
template struct OptimiserKernels<float, kTarget>;
template struct OptimiserKernels<double, kTarget>;
}  // namespace isomer
